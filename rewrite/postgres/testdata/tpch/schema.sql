-- The tables of TPC-H, each of whose rows but those of region and nation belongs to a tenant.
CREATE TABLE region (r_regionkey int PRIMARY KEY, r_name char(25), r_comment varchar(152));
CREATE TABLE nation (n_nationkey int PRIMARY KEY, n_name char(25), n_regionkey int REFERENCES region, n_comment varchar(152));
CREATE TABLE supplier (
  tenant int, s_suppkey int PRIMARY KEY, s_name char(25), s_address varchar(40), s_nationkey int REFERENCES nation,
  s_phone char(15), s_acctbal numeric(15,2), s_comment varchar(101));
CREATE TABLE customer (
  tenant int, c_custkey int PRIMARY KEY, c_name varchar(25), c_address varchar(40), c_nationkey int REFERENCES nation,
  c_phone char(15), c_acctbal numeric(15,2), c_mktsegment char(10), c_comment varchar(117));
CREATE TABLE part (
  tenant int, p_partkey int PRIMARY KEY, p_name varchar(55), p_mfgr char(25), p_brand char(10), p_type varchar(25),
  p_size int, p_container char(10), p_retailprice numeric(15,2), p_comment varchar(23));
CREATE TABLE partsupp (
  tenant int, ps_partkey int REFERENCES part, ps_suppkey int REFERENCES supplier, ps_availqty int,
  ps_supplycost numeric(15,2), ps_comment varchar(199), PRIMARY KEY (ps_partkey, ps_suppkey));
CREATE TABLE orders (
  tenant int, o_orderkey int PRIMARY KEY, o_custkey int REFERENCES customer, o_orderstatus char(1), o_totalprice numeric(15,2),
  o_orderdate date, o_orderpriority char(15), o_clerk char(15), o_shippriority int, o_comment varchar(79));
CREATE TABLE lineitem (
  tenant int, l_orderkey int REFERENCES orders, l_partkey int, l_suppkey int, l_linenumber int, l_quantity numeric(15,2),
  l_extendedprice numeric(15,2), l_discount numeric(15,2), l_tax numeric(15,2), l_returnflag char(1), l_linestatus char(1),
  l_shipdate date, l_commitdate date, l_receiptdate date, l_shipinstruct char(25), l_shipmode char(10), l_comment varchar(44),
  PRIMARY KEY (l_orderkey, l_linenumber));
CREATE INDEX customer_tenant ON customer (tenant, c_nationkey);
CREATE INDEX supplier_tenant ON supplier (tenant, s_nationkey);
CREATE INDEX part_tenant ON part (tenant, p_size);
CREATE INDEX partsupp_supplier ON partsupp (ps_suppkey);
CREATE INDEX orders_tenant ON orders (tenant, o_orderdate);
CREATE INDEX orders_customer ON orders (o_custkey);
CREATE INDEX lineitem_tenant ON lineitem (tenant, l_shipdate);
CREATE INDEX lineitem_part ON lineitem (l_partkey, l_suppkey);
