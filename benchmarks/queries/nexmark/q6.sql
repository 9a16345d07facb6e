SELECT seller, id, avg(final) OVER (PARTITION BY seller ORDER BY expires, id ROWS BETWEEN 9 PRECEDING AND CURRENT ROW) AS mean
FROM (
    SELECT a.id, a.seller, a.expires, max(b.price) AS final
    FROM auction AS a, bid AS b
    WHERE a.id = b.auction AND b.dateTime BETWEEN a.dateTime AND a.expires
    GROUP BY a.id, a.seller, a.expires
) AS q
