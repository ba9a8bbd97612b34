CREATE TABLE region (r_regionkey INTEGER PRIMARY KEY, r_name TEXT, r_comment TEXT);
CREATE TABLE nation (n_nationkey INTEGER PRIMARY KEY, n_name TEXT, n_regionkey INTEGER REFERENCES region, n_comment TEXT);
CREATE TABLE supplier (
  s_suppkey INTEGER PRIMARY KEY, s_name TEXT, s_address TEXT, s_nationkey INTEGER REFERENCES nation, s_phone TEXT, s_acctbal REAL,
  s_comment TEXT, s_tenant INTEGER
);
CREATE TABLE part (
  p_partkey INTEGER PRIMARY KEY, p_name TEXT, p_mfgr TEXT, p_brand TEXT, p_type TEXT, p_size INTEGER, p_container TEXT,
  p_retailprice REAL, p_comment TEXT
);
CREATE TABLE partsupp (
  ps_partkey INTEGER REFERENCES part, ps_suppkey INTEGER REFERENCES supplier, ps_availqty INTEGER, ps_supplycost REAL, ps_comment TEXT,
  ps_tenant INTEGER, PRIMARY KEY (ps_partkey, ps_suppkey)
);
CREATE TABLE customer (
  c_custkey INTEGER PRIMARY KEY, c_name TEXT, c_address TEXT, c_nationkey INTEGER REFERENCES nation, c_phone TEXT, c_acctbal REAL,
  c_mktsegment TEXT, c_comment TEXT, c_tenant INTEGER
);
CREATE TABLE orders (
  o_orderkey INTEGER PRIMARY KEY, o_custkey INTEGER REFERENCES customer, o_orderstatus TEXT, o_totalprice REAL, o_orderdate TEXT,
  o_orderpriority TEXT, o_clerk TEXT, o_shippriority INTEGER, o_comment TEXT, o_tenant INTEGER
);
CREATE TABLE lineitem (
  l_orderkey INTEGER REFERENCES orders, l_partkey INTEGER REFERENCES part, l_suppkey INTEGER REFERENCES supplier, l_linenumber INTEGER,
  l_quantity REAL, l_extendedprice REAL, l_discount REAL, l_tax REAL, l_returnflag TEXT, l_linestatus TEXT, l_shipdate TEXT,
  l_commitdate TEXT, l_receiptdate TEXT, l_shipinstruct TEXT, l_shipmode TEXT, l_comment TEXT, l_tenant INTEGER,
  PRIMARY KEY (l_orderkey, l_linenumber)
);
CREATE INDEX supplier_nation ON supplier (s_nationkey);
CREATE INDEX partsupp_supplier ON partsupp (ps_suppkey);
CREATE INDEX customer_nation ON customer (c_nationkey);
CREATE INDEX orders_customer ON orders (o_custkey);
CREATE INDEX orders_date ON orders (o_tenant, o_orderdate);
CREATE INDEX lineitem_part ON lineitem (l_partkey, l_suppkey);
CREATE INDEX lineitem_shipped ON lineitem (l_tenant, l_shipdate);
