SELECT q.category, avg(q.final) AS mean
FROM (
    SELECT max(b.price) AS final, a.category
    FROM auction AS a, bid AS b
    WHERE a.id = b.auction AND b.dateTime BETWEEN a.dateTime AND a.expires
    GROUP BY a.id, a.category
) AS q
GROUP BY q.category
