-- Flights from New York City: what each table holds, and what is kept up to date over them.
-- Keys begin with the column that has most values, since it is the first column that is indexed; so do the conditions of joins.

CREATE TABLE airlines (
    carrier STRING NOT NULL,
    name STRING NOT NULL,
    PRIMARY KEY (carrier)
);

CREATE TABLE planes (
    tailnum STRING NOT NULL,
    manufacturer STRING,
    model STRING,
    PRIMARY KEY (tailnum)
);

CREATE TABLE weather (
    origin STRING NOT NULL,
    time_hour TIMESTAMP NOT NULL,
    wind_speed DOUBLE,
    precip DOUBLE,
    visib DOUBLE,
    PRIMARY KEY (time_hour, origin)
);

-- Delays and air_time are NULL until they are known.
CREATE TABLE flights (
    year INT NOT NULL,
    month INT NOT NULL,
    day INT NOT NULL,
    carrier STRING NOT NULL,
    flight INT NOT NULL,
    origin STRING NOT NULL,
    dest STRING NOT NULL,
    tailnum STRING,
    distance INT NOT NULL,
    time_hour TIMESTAMP NOT NULL,
    dep_delay INT,
    arr_delay INT,
    air_time INT,
    PRIMARY KEY (flight, day, month, carrier, origin, year)
);

-- Delays by carrier and month.
CREATE MATERIALIZED VIEW carrier_delays AS
SELECT f.carrier, a.name, f.month,
       COUNT(*) AS flights,
       COUNT(f.dep_delay) AS departed,
       AVG(f.dep_delay) AS mean_delay,
       MAX(f.dep_delay) AS worst_delay,
       COUNT(*) FILTER (WHERE f.arr_delay > 15) AS late
FROM flights f JOIN airlines a ON a.carrier = f.carrier
GROUP BY f.carrier, a.name, f.month;

-- The ten busiest routes now.
CREATE MATERIALIZED VIEW busiest_routes AS
SELECT origin, dest, COUNT(*) AS flights
FROM flights
GROUP BY origin, dest
ORDER BY flights DESC, origin, dest
LIMIT 10;

-- What each plane has done; flights without a known plane count too.
CREATE MATERIALIZED VIEW plane_totals AS
SELECT f.tailnum, p.manufacturer, p.model,
       COUNT(*) AS flights,
       SUM(f.distance) AS miles,
       SUM(f.air_time) AS minutes
FROM flights f LEFT JOIN planes p ON p.tailnum = f.tailnum
GROUP BY f.tailnum, p.manufacturer, p.model;

-- Carriers with no flight that left more than two hours late in a month.
CREATE MATERIALIZED VIEW punctual_carriers AS
SELECT c.carrier, c.month, c.departed
FROM (
    SELECT carrier, month, COUNT(*) AS departed
    FROM flights
    WHERE dep_delay IS NOT NULL
    GROUP BY carrier, month
) c
WHERE NOT EXISTS (
    SELECT 1 FROM flights l
    WHERE l.carrier = c.carrier AND l.month = c.month AND l.dep_delay > 120
);

-- Delays by the weather at the hour of departure.
CREATE MATERIALIZED VIEW weather_delays AS
SELECT s.origin, s.sky,
       COUNT(*) AS departed,
       AVG(s.dep_delay) AS mean_delay,
       AVG(s.wind_speed) AS mean_wind,
       COUNT(*) FILTER (WHERE s.dep_delay > 60) AS hour_late
FROM (
    SELECT f.origin, f.dep_delay, w.wind_speed,
           CASE WHEN w.precip > 0 THEN 'rain' WHEN w.visib < 3 THEN 'fog' WHEN w.wind_speed >= 20 THEN 'wind' ELSE 'fair' END AS sky
    FROM flights f JOIN weather w ON w.time_hour = f.time_hour AND w.origin = f.origin
    WHERE f.dep_delay IS NOT NULL
) s
GROUP BY s.origin, s.sky;

-- Departed and not landed: in the air, or diverted.
CREATE MATERIALIZED VIEW under_way AS
SELECT origin, COUNT(*) AS flights, MIN(distance) AS nearest, MAX(distance) AS farthest
FROM flights
WHERE dep_delay IS NOT NULL AND air_time IS NULL
GROUP BY origin;
