SELECT SUM(l_extendedprice * (1 - l_discount)) AS revenue
FROM lineitem, part
WHERE p_partkey = l_partkey AND l_shipmode IN ('AIR', 'AIR REG') AND l_shipinstruct = 'DELIVER IN PERSON' {l}
  AND (p_brand = 'Brand#12' AND p_container IN ('SM CASE', 'SM BOX') AND l_quantity BETWEEN 1 AND 31 AND p_size BETWEEN 1 AND 25
    OR p_brand = 'Brand#23' AND p_container IN ('MED BAG', 'MED BOX') AND l_quantity BETWEEN 10 AND 50 AND p_size BETWEEN 1 AND 40)
