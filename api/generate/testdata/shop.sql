-- The shop that the specification asks about. Schemas are attached databases.
CREATE TABLE sales.orders (
  id INTEGER PRIMARY KEY, customer_id INTEGER, store_id INTEGER, weather_id INTEGER, channel TEXT, region TEXT, status TEXT,
  ordered_on DATE, shipped_at TEXT, amount INTEGER, cost INTEGER, ship_country TEXT, bill_country TEXT, "group" TEXT, year INTEGER
);
INSERT INTO sales.orders VALUES
  (1, 1, 1, 1, 'web',  'EMEA', 'shipped',   '2024-12-30', '2025-01-02T09:00:00', 10000, 4000, 'DE', 'DE', 'a', 24),
  (2, 1, 2, 1, 'shop', 'EMEA', 'shipped',   '2025-01-01', '2025-01-01T10:00:00', 20000, NULL, 'DE', 'FR', 'a', 25),
  (3, 2, NULL, 2, 'web', 'AMER', 'open',    '2025-03-31', NULL,                   5000, 1000, 'US', 'US', 'b', 25),
  (4, 3, 2, 2, 'web',  'APAC', 'cancelled', '2025-04-01', NULL,                  70000, 9000, 'JP', 'JP', 'b', 25),
  (5, 4, 1, 1, 'shop', 'EMEA', 'shipped',   '2025-07-15', '2025-07-16T08:30:00',  2500,  500, 'FR', 'FR', 'c', 25),
  (6, 2, NULL, 1, 'web', 'AMER', 'shipped', '2025-08-19', '2025-08-20T00:00:00',  1500,  700, 'US', 'US', 'c', 25),
  (7, NULL, 3, 1, 'web', NULL, 'shipped',   '2025-08-20', '2025-08-20T11:00:00',   100,   50, 'US', 'DE', 'c', 25);
CREATE TABLE sales.test_orders (order_id INTEGER);
INSERT INTO sales.test_orders VALUES (7);
CREATE TABLE sales.order_archive (id INTEGER PRIMARY KEY, region TEXT, amount INTEGER);
INSERT INTO sales.order_archive VALUES (1, 'EMEA', 1);
CREATE TABLE sales.order_items (id INTEGER PRIMARY KEY, order_id INTEGER, product_id INTEGER, qty INTEGER, buyer_id INTEGER);
INSERT INTO sales.order_items VALUES (1, 1, 1, 2, 1), (2, 1, 2, 1, 1), (3, 2, 2, 5, 1), (4, 3, 3, 1, 1), (5, 5, 1, 1, 1), (6, 6, 3, 3, 1);
CREATE TABLE sales.products (id INTEGER PRIMARY KEY, name TEXT, category_code TEXT, price INTEGER);
INSERT INTO sales.products VALUES (1, 'Tent', 'CAMP', 100), (2, 'Rope', 'CLIMB', 30), (3, 'Top Rope', 'CLIMB', 40);
CREATE TABLE sales.stores (id INTEGER PRIMARY KEY, store_name TEXT, city TEXT, region TEXT, amount INTEGER);
INSERT INTO sales.stores VALUES (1, 'North End', 'Berlin', 'EMEA', 0), (2, 'Pro', 'Lyon', 'EMEA', 0), (3, 'O''Hare', 'Chicago', 'AMER', 0);
CREATE TABLE sales.weather (id INTEGER PRIMARY KEY, sky TEXT);
INSERT INTO sales.weather VALUES (1, 'clear'), (2, 'grey');
CREATE TABLE sales.countries (code TEXT PRIMARY KEY, name TEXT);
INSERT INTO sales.countries VALUES ('DE', 'Germany'), ('FR', 'France'), ('US', 'United States'), ('JP', 'Japan');
CREATE TABLE sales.promotions (id INTEGER PRIMARY KEY, title TEXT, kind TEXT);
INSERT INTO sales.promotions VALUES (1, 'Summer Sale 2025', 'rebate'), (2, 'Newcomer', 'voucher');
CREATE TABLE sales.order_promotions (order_id INTEGER, promotion_id INTEGER, PRIMARY KEY (order_id, promotion_id));
INSERT INTO sales.order_promotions VALUES (2, 1), (2, 2), (5, 1), (6, 2);
CREATE TABLE sales.customers (id INTEGER PRIMARY KEY, segment TEXT, rank TEXT);
INSERT INTO sales.customers VALUES (1, 'gold', 'first');
CREATE TABLE crm.customers (id INTEGER PRIMARY KEY, name TEXT, email TEXT, segment TEXT, region TEXT, vip BOOLEAN);
INSERT INTO crm.customers VALUES
  (1, 'Ada', 'ada@example.com', 'gold', 'EMEA', 1), (2, 'Bo', 'bo@example.com', 'silver', 'AMER', 0),
  (3, 'Cy', 'cy@example.com', 'gold', 'APAC', 0), (4, 'Di', 'di@example.com', 'silver', 'EMEA', 1);
CREATE TABLE crm.tags (customer_id INTEGER, tag TEXT);
INSERT INTO crm.tags VALUES (1, 'runner'), (1, 'climber'), (2, 'runner'), (4, 'climber');
CREATE TABLE hr.employees (id INTEGER PRIMARY KEY, name TEXT, department_id INTEGER, salary INTEGER, hired_on INTEGER, left_on DATE);
INSERT INTO hr.employees VALUES (1, 'Eve', 1, 5000, 1700000000, NULL), (2, 'Flo', 1, 7000, 1710000000, NULL), (3, 'Gil', 2, 4000, 1720000000, '2025-01-01');
CREATE TABLE hr.departments (id INTEGER PRIMARY KEY, dept_name TEXT, manager_id INTEGER);
INSERT INTO hr.departments VALUES (1, 'Sales', 1), (2, 'Logistics', 3);
