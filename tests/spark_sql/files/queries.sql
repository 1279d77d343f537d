-- Queries of many shapes over tables with NULL, NaN, both zeros, ends of days and repeated names.
--SET spark.sql.shuffle.partitions=2

CREATE TEMPORARY VIEW events AS SELECT * FROM VALUES
  (1, 'a', 1.5D, TIMESTAMP '2024-03-10 01:59:59', DATE '2024-03-10', 10.25),
  (2, 'b', double('NaN'), TIMESTAMP '2024-03-10 03:00:00', DATE '2024-02-29', NULL),
  (3, NULL, -0.0D, TIMESTAMP '2024-11-03 01:30:00', NULL, -3.00),
  (4, '', 0.0D, NULL, DATE '1970-01-01', 0.01),
  (5, 'b', NULL, TIMESTAMP '1969-12-31 23:59:59.999999', DATE '9999-12-31', 99999.99),
  (6, 'é', double('-Infinity'), TIMESTAMP '2024-11-03 02:00:00', DATE '0001-01-01', 1.00)
AS events(id, name, x, at, day, price);

CREATE TABLE people USING parquet AS SELECT * FROM VALUES
  (1, 'a', struct(10 AS n, 'x' AS s), array(1, 2)),
  (2, 'b', struct(NULL AS n, 'y' AS s), array()),
  (2, 'c', NULL, NULL)
AS people(id, name, place, numbers);

SELECT * FROM events;
SELECT count(*), count(x), max(x), min(x), sum(price) FROM events WHERE x > 1;
SELECT id FROM events WHERE x = 0 OR x = 'NaN' OR x IS NULL;
SELECT id FROM events WHERE name NOT IN ('a', NULL) OR day < DATE '1970-01-02';
SELECT id FROM events WHERE hour(at) = 1 AND date_trunc('DAY', at) >= TIMESTAMP '2024-03-10';
SELECT e.id, p.name FROM events e LEFT JOIN people p ON e.id = p.id AND p.name > 'b' WHERE e.id < 4;
SELECT * FROM events NATURAL JOIN people;
SELECT id FROM events e WHERE EXISTS (SELECT 1 FROM people p WHERE p.id = e.id AND p.place.n = 10);
SELECT id FROM events WHERE id NOT IN (SELECT place.n FROM people);
SELECT id FROM events WHERE id NOT IN (SELECT id FROM people WHERE id IS NOT NULL);
WITH few AS (SELECT * FROM events WHERE id > 2) SELECT a.id, b.id FROM few a, few b WHERE a.id < b.id AND b.id < 5;
SELECT id, sum(id) OVER (PARTITION BY name ORDER BY id) FROM events WHERE price > 0;
SELECT name, count(*) FROM events GROUP BY ROLLUP (name) HAVING count(*) > 1;
SELECT id FROM events WHERE id > 1 ORDER BY x DESC NULLS LAST, id LIMIT 2;
SELECT id FROM events WHERE id > 5 UNION ALL SELECT id FROM people WHERE id < 2;
SELECT id FROM events EXCEPT SELECT id FROM people;
SELECT id, n FROM people LATERAL VIEW explode(numbers) t AS n WHERE id + n > 2;
SELECT (SELECT max(id) FROM people WHERE id < 2), count(*) FROM events WHERE id < 3;
SELECT 1 / (id - 1) FROM events WHERE id > 3;
INSERT INTO people VALUES (7, 'd', struct(7 AS n, 'z' AS s), array(7));
SELECT id FROM people WHERE place.s > 'y' OR get(numbers, 0) = 1;
DROP TABLE people;
SELECT * FROM people;
