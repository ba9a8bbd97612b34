SELECT c_name, c_custkey, o_orderkey, o_orderdate, o_totalprice, SUM(l_quantity)
FROM customer, orders, lineitem
WHERE o_orderkey IN (SELECT l_orderkey FROM lineitem WHERE 1 = 1 {l} GROUP BY l_orderkey HAVING SUM(l_quantity) > 150)
  AND c_custkey = o_custkey AND o_orderkey = l_orderkey {c} {o} {l}
GROUP BY c_name, c_custkey, o_orderkey, o_orderdate, o_totalprice
ORDER BY o_totalprice DESC, o_orderdate, o_orderkey
LIMIT 100
