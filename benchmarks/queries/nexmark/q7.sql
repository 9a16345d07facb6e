SELECT b.auction, b.price, b.bidder, b.dateTime, b.extra
FROM (SELECT *, window(dateTime, '10 seconds').start AS starttime FROM bid) AS b
JOIN (
    SELECT max(price) AS maxprice, window.start AS starttime
    FROM bid
    GROUP BY window(dateTime, '10 seconds')
) AS highest ON b.price = highest.maxprice AND b.starttime = highest.starttime
