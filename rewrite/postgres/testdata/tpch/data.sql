-- Small data in which each query finds something.
INSERT INTO region SELECT i, (ARRAY['AFRICA', 'AMERICA', 'ASIA', 'EUROPE', 'MIDDLE EAST'])[i + 1], 'r' FROM generate_series(0, 4) i;
INSERT INTO nation SELECT i, (ARRAY['ALGERIA', 'BRAZIL', 'INDIA', 'FRANCE', 'SAUDI ARABIA', 'KENYA', 'CANADA', 'CHINA', 'GERMANY', 'EGYPT'])[i + 1], i % 5, 'n'
  FROM generate_series(0, 9) i;
INSERT INTO supplier SELECT i % 3, i, 'Supplier#' || i, 'street ' || i, i * 3 % 10, (10 + i % 25) || '-555', i * 37 % 1000, CASE WHEN i % 9 = 0 THEN 'Customer of Complaints' ELSE 'fine' END
  FROM generate_series(1, 40) i;
INSERT INTO customer SELECT i % 3, i, 'Customer#' || i, 'road ' || i, i * 7 % 9, (10 + i % 25) || '-777', i * 53 % 1000 - 100,
  (ARRAY['BUILDING', 'AUTOMOBILE', 'MACHINERY'])[i % 3 + 1], 'c' FROM generate_series(1, 150) i;
INSERT INTO part SELECT i % 3, i, (ARRAY['forest green', 'green metal', 'plain blue', 'red steel'])[i % 4 + 1], 'Manufacturer#' || i % 5, 'Brand#' || 10 + i % 15,
  (ARRAY['PROMO BRASS', 'ECONOMY ANODIZED STEEL', 'MEDIUM POLISHED TIN', 'LARGE BRASS'])[i % 4 + 1], i % 50 + 1, (ARRAY['SM CASE', 'MED BOX', 'LG CASE', 'JUMBO PKG'])[i % 4 + 1],
  900 + i, 'p' FROM generate_series(1, 200) i;
INSERT INTO partsupp SELECT i % 3, i, (i + k * 7) % 40 + 1, i * k % 500 + 1, i % 90 + k, 'ps' FROM generate_series(1, 200) i, generate_series(0, 3) k;
INSERT INTO orders SELECT i % 3, i, i % 140 + 1, (ARRAY['F', 'O', 'P'])[i % 3 + 1], 1000 + i * 13 % 5000, date '1992-01-01' + i * 4 % 2500,
  (ARRAY['1-URGENT', '2-HIGH', '3-MEDIUM', '5-LOW'])[i % 4 + 1], 'Clerk#' || i % 10, 0, CASE WHEN i % 11 = 0 THEN 'special handling requests' ELSE 'o' END FROM generate_series(1, 900) i;
INSERT INTO lineitem SELECT i % 3, i, i * k % 200 + 1, (i * k % 200 + 1 + k % 4 * 7) % 40 + 1, k, i * k % 50 + 1, 100 + i * k % 9000, i % 11 / 100.0, k / 100.0, (ARRAY['R', 'A', 'N'])[(i + k) % 3 + 1],
  (ARRAY['O', 'F'])[k % 2 + 1], date '1992-01-01' + (i * 4 % 2500 + k * 20), date '1992-01-01' + (i * 4 % 2500 + 50), date '1992-01-01' + (i * 4 % 2500 + k * 20 + 15),
  (ARRAY['DELIVER IN PERSON', 'NONE'])[i % 2 + 1], (ARRAY['AIR', 'MAIL', 'SHIP', 'AIR REG'])[k % 4 + 1], 'l' FROM generate_series(1, 900) i, generate_series(1, 5) k;
ANALYZE;
