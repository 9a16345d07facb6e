CREATE TABLE person (
    id BIGINT NOT NULL,
    name STRING,
    emailAddress STRING,
    creditCard STRING,
    city STRING,
    state STRING,
    dateTime TIMESTAMP NOT NULL,
    extra STRING,
    PRIMARY KEY (id)
);

CREATE TABLE auction (
    id BIGINT NOT NULL,
    itemName STRING,
    description STRING,
    initialBid BIGINT,
    reserve BIGINT,
    dateTime TIMESTAMP NOT NULL,
    expires TIMESTAMP NOT NULL,
    seller BIGINT NOT NULL,
    category BIGINT NOT NULL,
    extra STRING,
    PRIMARY KEY (id)
);

CREATE TABLE bid (
    auction BIGINT NOT NULL,
    bidder BIGINT NOT NULL,
    price BIGINT NOT NULL,
    channel STRING NOT NULL,
    url STRING NOT NULL,
    dateTime TIMESTAMP NOT NULL,
    extra STRING NOT NULL
);

CREATE TABLE side_input (
    key BIGINT NOT NULL,
    value STRING,
    PRIMARY KEY (key)
);
