WITH bids AS (
    SELECT auction, count(*) AS num, window.start AS starttime
    FROM bid
    GROUP BY auction, window(dateTime, '10 seconds', '2 seconds')
)
SELECT bids.auction, bids.num, bids.starttime
FROM bids JOIN (SELECT max(num) AS maxn, starttime FROM bids GROUP BY starttime) AS most
    ON bids.starttime = most.starttime AND bids.num >= most.maxn
