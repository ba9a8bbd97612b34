package mysql_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/schemagate/schemagate/rewrite/mysql"
)

// TestObjects reads one script and checks what the catalog then says, a line a table or column.
func TestObjects(t *testing.T) {
	for _, c := range []struct{ name, ddl, want string }{
		{
			"SHOW CREATE TABLE", "CREATE TABLE `order item` (\n  `id` int(11) NOT NULL AUTO_INCREMENT,\n  `Sku` varchar(20) DEFAULT NULL COMMENT 'stock; unit',\n" +
				"  `price` decimal(10,2) unsigned NOT NULL DEFAULT 0.00,\n  `made` timestamp NOT NULL DEFAULT current_timestamp() ON UPDATE current_timestamp(),\n" +
				"  `kind` enum('a','b;') DEFAULT 'a',\n  `product` int(11) DEFAULT NULL,\n  PRIMARY KEY (`id`),\n  UNIQUE KEY `u` (`sku`,`kind`),\n  KEY `p` (`product`),\n" +
				"  CONSTRAINT `f` FOREIGN KEY (`product`) REFERENCES `product` (`id`) ON DELETE CASCADE\n" +
				") ENGINE=InnoDB AUTO_INCREMENT=7 DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_uca1400_ai_ci COMMENT='what was ordered'",
			"order item pk=[id] unique=[[Sku kind]] fk=[{[product] shop.product [id]}]; id int(11) not null; Sku varchar(20) stock; unit; price decimal(10,2) unsigned not null; " +
				"made timestamp not null; kind enum('a','b;'); product int(11)",
		},
		{
			"a dump: other statements and executable comments", "-- MariaDB dump\n/*!40101 SET NAMES utf8mb4 */;\nDROP TABLE IF EXISTS `a`;\n/*!40101 SET character_set_client = utf8 */;\n" +
				"CREATE TABLE `a` (\n  `id` int(11) NOT NULL\n) ENGINE=InnoDB;\n/*!40101 SET x = @y */;\nLOCK TABLES `a` WRITE;\nINSERT INTO `a` VALUES (1),(2);\n" +
				"INSERT INTO x VALUES ('CREATE TABLE no (id int);');\nUNLOCK TABLES;\n/*!50001 CREATE VIEW `v` AS SELECT 1 AS `n` */;\n/*!50001 DROP VIEW IF EXISTS `v`*/;\n" +
				"/*!50001 CREATE ALGORITHM=UNDEFINED */\n/*!50013 DEFINER=`root`@`localhost` SQL SECURITY DEFINER */\n/*!50001 VIEW `v` AS select `a`.`id` AS `id`,2 AS `two` from `a` */;\n",
			"a; id int(11) not null\nv view; id; two",
		},
		{"keys beside their columns", "create table p (a int primary key, b int unique); create table c (x int references p (a), y int, foreign key (y) references p)",
			"p pk=[a] unique=[[b]]; a int(11) not null; b int(11)\nc fk=[{[x] shop.p [a]} {[y] shop.p [a]}]; x int(11); y int(11)"},
		{"a view's star", "create table a (i int, s text); create view v as select x.*, 1+1 from a x; create view w (p) as select i from a; create view u as select * from elsewhere",
			"a; i int(11); s text\nv view; i int(11); s text; 1+1\nw view; p"},
		{"a copy", "create table a (i int primary key); create table b like a", "a pk=[i]; i int(11) not null\nb pk=[i]; i int(11) not null"},
		{"another database, another definition, what does not parse", "create table other.a (i int); create table shop.b (i int); create table b2 (; drop table b; create table b (j int); create temporary table c (i int)",
			"b; j int(11)"},
		{"nothing", "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			d, objects, err := mysql.New().Objects("shop", c.ddl)
			if err != nil || d.Name != "shop" || d.Dialect != "mysql" {
				t.Fatal(d, err)
			}
			var lines []string
			for _, o := range objects {
				if o.Table == nil {
					s := "; " + o.Ref.Column
					if o.Column.Type != "" {
						s += " " + o.Column.Type
					}
					if o.Column.NotNull {
						s += " not null"
					}
					if o.Description != "" {
						s += " " + o.Description
					}
					lines[len(lines)-1] += s
					continue
				}
				s := o.Ref.Table
				if o.Table.SQLView != "" {
					s += " view"
				}
				for _, part := range []struct {
					name  string
					value any
					n     int
				}{{"pk", o.Table.PrimaryKey, len(o.Table.PrimaryKey)}, {"unique", o.Table.UniqueKeys, len(o.Table.UniqueKeys)}, {"fk", o.Table.ForeignKeys, len(o.Table.ForeignKeys)}} {
					if part.n > 0 {
						s += fmt.Sprintf(" %s=%v", part.name, part.value)
					}
				}
				lines = append(lines, s)
			}
			if got := strings.Join(lines, "\n"); got != c.want {
				t.Errorf("got\n%s\nwant\n%s", got, c.want)
			}
		})
	}
}
