-- Numbers of the shop, in SQL.
CREATE TEMPORARY VIEW european_suppliers AS
SELECT s_suppkey, s_name, n_name FROM tpch.supplier
JOIN tpch.nation ON s_nationkey = n_nationkey
JOIN tpch.region ON n_regionkey = r_regionkey
WHERE r_name = 'EUROPE';

CREATE MATERIALIZED VIEW pricing_summary USING delta AS
SELECT l_returnflag, l_linestatus, sum(l_quantity) AS quantity, sum(l_extendedprice) AS price, avg(l_discount) AS discount, count(*) AS items
FROM tpch.lineitem
GROUP BY l_returnflag, l_linestatus;

CREATE MATERIALIZED VIEW supplier_revenue USING delta COMMENT 'of suppliers in Europe' AS
SELECT s_suppkey, s_name, n_name, sum(l_extendedprice * (1 - l_discount)) AS revenue
FROM tpch.lineitem JOIN european_suppliers ON l_suppkey = s_suppkey
GROUP BY s_suppkey, s_name, n_name;

CREATE MATERIALIZED VIEW part_demand USING delta AS
SELECT p_brand, p_type, sum(l_quantity) AS quantity, count(DISTINCT l_orderkey) AS orders
FROM tpch.lineitem JOIN tpch.part ON l_partkey = p_partkey
GROUP BY p_brand, p_type;

CREATE MATERIALIZED VIEW quiet_customers USING delta AS
SELECT c_custkey, c_name, c_mktsegment FROM tpch.customer
WHERE NOT EXISTS (SELECT 1 FROM tpch.orders WHERE o_custkey = c_custkey);

CREATE MATERIALIZED VIEW priority_by_month USING delta AS
SELECT date_trunc('MONTH', o_orderdate) AS month, o_orderpriority, count(*) AS orders, sum(o_totalprice) AS total
FROM tpch.orders
GROUP BY date_trunc('MONTH', o_orderdate), o_orderpriority;

CREATE MATERIALIZED VIEW checkout_spend USING delta AS
SELECT c.customer, count(*) AS checkouts, max(s.spent) AS spent
FROM checkouts c LEFT JOIN customer_spend s ON c.customer = s.o_custkey
GROUP BY c.customer;
