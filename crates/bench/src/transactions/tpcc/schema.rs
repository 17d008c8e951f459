//! Tables and statements, in SQL that both engines read.
//!
//! Numbers are BIGINT: money in cents, taxes and discounts in ten-thousandths, times and dates a count of transactions.
//! A street stands for the two lines of an address, `s_dist` for its ten columns. `c_credit` is 1 where credit is bad.
//! There are no secondary indexes: `customer_name` and `customer_order` are tables in their place, in both engines.

/// The tables.
pub(super) const TABLES: [&str; 11] = [
    "CREATE TABLE warehouse (w_id BIGINT PRIMARY KEY, w_tax BIGINT, w_ytd BIGINT, w_name TEXT, w_street TEXT, \
     w_city TEXT, w_state TEXT, w_zip TEXT)",
    "CREATE TABLE district (d_w_id BIGINT, d_id BIGINT, d_tax BIGINT, d_ytd BIGINT, d_next_o_id BIGINT, d_name TEXT, \
     d_street TEXT, d_city TEXT, d_state TEXT, d_zip TEXT, PRIMARY KEY (d_w_id, d_id))",
    "CREATE TABLE customer (c_w_id BIGINT, c_d_id BIGINT, c_id BIGINT, c_credit BIGINT, c_credit_lim BIGINT, \
     c_discount BIGINT, c_balance BIGINT, c_ytd_payment BIGINT, c_payment_cnt BIGINT, c_delivery_cnt BIGINT, \
     c_since BIGINT, c_first TEXT, c_middle TEXT, c_last TEXT, c_street TEXT, c_city TEXT, c_state TEXT, c_zip TEXT, \
     c_phone TEXT, c_data TEXT, PRIMARY KEY (c_w_id, c_d_id, c_id))",
    "CREATE TABLE customer_name (cn_w_id BIGINT, cn_d_id BIGINT, cn_last TEXT, cn_first TEXT, cn_c_id BIGINT, \
     PRIMARY KEY (cn_w_id, cn_d_id, cn_last, cn_first, cn_c_id))",
    "CREATE TABLE customer_order (co_w_id BIGINT, co_d_id BIGINT, co_c_id BIGINT, co_o_id BIGINT, \
     PRIMARY KEY (co_w_id, co_d_id, co_c_id, co_o_id))",
    "CREATE TABLE history (h_c_id BIGINT, h_c_d_id BIGINT, h_c_w_id BIGINT, h_d_id BIGINT, h_w_id BIGINT, \
     h_date BIGINT, h_amount BIGINT, h_data TEXT)",
    "CREATE TABLE orders (o_w_id BIGINT, o_d_id BIGINT, o_id BIGINT, o_c_id BIGINT, o_entry_d BIGINT, \
     o_carrier_id BIGINT, o_ol_cnt BIGINT, o_all_local BIGINT, PRIMARY KEY (o_w_id, o_d_id, o_id))",
    "CREATE TABLE new_order (no_w_id BIGINT, no_d_id BIGINT, no_o_id BIGINT, PRIMARY KEY (no_w_id, no_d_id, no_o_id))",
    "CREATE TABLE order_line (ol_w_id BIGINT, ol_d_id BIGINT, ol_o_id BIGINT, ol_number BIGINT, ol_i_id BIGINT, \
     ol_supply_w_id BIGINT, ol_delivery_d BIGINT, ol_quantity BIGINT, ol_amount BIGINT, ol_dist_info TEXT, \
     PRIMARY KEY (ol_w_id, ol_d_id, ol_o_id, ol_number))",
    "CREATE TABLE item (i_id BIGINT PRIMARY KEY, i_im_id BIGINT, i_price BIGINT, i_name TEXT, i_data TEXT)",
    "CREATE TABLE stock (s_w_id BIGINT, s_i_id BIGINT, s_quantity BIGINT, s_ytd BIGINT, s_order_cnt BIGINT, \
     s_remote_cnt BIGINT, s_dist TEXT, s_data TEXT, PRIMARY KEY (s_w_id, s_i_id))",
];

macro_rules! queries {
    ($($name:ident: $sql:literal;)*) => {
        /// A statement, which both engines prepare once.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(super) enum Query {
            $($name,)*
        }

        impl Query {
            /// All of them, in the order of their numbers.
            pub(super) const ALL: &[Self] = &[$(Self::$name,)*];

            pub(super) fn sql(self) -> &'static str {
                match self {
                    $(Self::$name => $sql,)*
                }
            }
        }
    };
}

queries! {
    InsertWarehouse: "INSERT INTO warehouse VALUES ($1, $2, $3, $4, $5, $6, $7, $8)";
    InsertDistrict: "INSERT INTO district VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)";
    InsertCustomer: "INSERT INTO customer VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, \
        $16, $17, $18, $19, $20)";
    InsertCustomerName: "INSERT INTO customer_name VALUES ($1, $2, $3, $4, $5)";
    InsertCustomerOrder: "INSERT INTO customer_order VALUES ($1, $2, $3, $4)";
    InsertHistory: "INSERT INTO history VALUES ($1, $2, $3, $4, $5, $6, $7, $8)";
    InsertOrder: "INSERT INTO orders VALUES ($1, $2, $3, $4, $5, $6, $7, $8)";
    InsertNewOrder: "INSERT INTO new_order VALUES ($1, $2, $3)";
    InsertLine: "INSERT INTO order_line VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)";
    InsertItem: "INSERT INTO item VALUES ($1, $2, $3, $4, $5)";
    InsertStock: "INSERT INTO stock VALUES ($1, $2, $3, $4, $5, $6, $7, $8)";

    WarehouseTax: "SELECT w_tax FROM warehouse WHERE w_id = $1";
    WarehouseAddress: "SELECT w_name, w_street, w_city, w_state, w_zip FROM warehouse WHERE w_id = $1";
    WarehousePaid: "UPDATE warehouse SET w_ytd = w_ytd + $2 WHERE w_id = $1";
    DistrictNext: "SELECT d_tax, d_next_o_id FROM district WHERE d_w_id = $1 AND d_id = $2";
    DistrictAddress: "SELECT d_name, d_street, d_city, d_state, d_zip FROM district WHERE d_w_id = $1 AND d_id = $2";
    DistrictAdvance: "UPDATE district SET d_next_o_id = d_next_o_id + 1 WHERE d_w_id = $1 AND d_id = $2";
    DistrictPaid: "UPDATE district SET d_ytd = d_ytd + $3 WHERE d_w_id = $1 AND d_id = $2";
    CustomersOfName: "SELECT cn_c_id FROM customer_name WHERE cn_w_id = $1 AND cn_d_id = $2 AND cn_last = $3 \
        ORDER BY cn_first";
    CustomerDiscount: "SELECT c_discount, c_credit, c_last FROM customer \
        WHERE c_w_id = $1 AND c_d_id = $2 AND c_id = $3";
    CustomerAll: "SELECT c_balance, c_credit, c_credit_lim, c_discount, c_since, c_first, c_middle, c_last, c_street, \
        c_city, c_state, c_zip, c_phone FROM customer WHERE c_w_id = $1 AND c_d_id = $2 AND c_id = $3";
    CustomerBalance: "SELECT c_balance, c_first, c_middle, c_last FROM customer \
        WHERE c_w_id = $1 AND c_d_id = $2 AND c_id = $3";
    CustomerData: "SELECT c_data FROM customer WHERE c_w_id = $1 AND c_d_id = $2 AND c_id = $3";
    CustomerPaid: "UPDATE customer SET c_balance = c_balance - $4, c_ytd_payment = c_ytd_payment + $4, \
        c_payment_cnt = c_payment_cnt + 1 WHERE c_w_id = $1 AND c_d_id = $2 AND c_id = $3";
    CustomerPaidBad: "UPDATE customer SET c_balance = c_balance - $4, c_ytd_payment = c_ytd_payment + $4, \
        c_payment_cnt = c_payment_cnt + 1, c_data = $5 WHERE c_w_id = $1 AND c_d_id = $2 AND c_id = $3";
    CustomerDelivered: "UPDATE customer SET c_balance = c_balance + $4, c_delivery_cnt = c_delivery_cnt + 1 \
        WHERE c_w_id = $1 AND c_d_id = $2 AND c_id = $3";
    ItemPrice: "SELECT i_price, i_name, i_data FROM item WHERE i_id = $1";
    StockOf: "SELECT s_quantity, s_dist, s_data FROM stock WHERE s_w_id = $1 AND s_i_id = $2";
    StockTaken: "UPDATE stock SET s_quantity = $3, s_ytd = s_ytd + $4, s_order_cnt = s_order_cnt + 1 \
        WHERE s_w_id = $1 AND s_i_id = $2";
    StockLow: "SELECT count(DISTINCT s_i_id) FROM order_line JOIN stock ON s_w_id = ol_w_id AND s_i_id = ol_i_id \
        WHERE ol_w_id = $1 AND ol_d_id = $2 AND ol_o_id >= $3 AND ol_o_id < $4 AND s_quantity < $5";
    LastOrder: "SELECT co_o_id FROM customer_order WHERE co_w_id = $1 AND co_d_id = $2 AND co_c_id = $3 \
        ORDER BY co_o_id DESC LIMIT 1";
    OrderOf: "SELECT o_c_id, o_entry_d, o_carrier_id, o_ol_cnt FROM orders \
        WHERE o_w_id = $1 AND o_d_id = $2 AND o_id = $3";
    OrderCarried: "UPDATE orders SET o_carrier_id = $4 WHERE o_w_id = $1 AND o_d_id = $2 AND o_id = $3";
    LinesOf: "SELECT ol_i_id, ol_quantity, ol_amount, ol_delivery_d FROM order_line \
        WHERE ol_w_id = $1 AND ol_d_id = $2 AND ol_o_id = $3";
    LinesAmount: "SELECT CAST(sum(ol_amount) AS BIGINT) FROM order_line \
        WHERE ol_w_id = $1 AND ol_d_id = $2 AND ol_o_id = $3";
    LinesDelivered: "UPDATE order_line SET ol_delivery_d = $4 WHERE ol_w_id = $1 AND ol_d_id = $2 AND ol_o_id = $3";
    OldestNew: "SELECT no_o_id FROM new_order WHERE no_w_id = $1 AND no_d_id = $2 ORDER BY no_o_id LIMIT 1";
    DeleteNew: "DELETE FROM new_order WHERE no_w_id = $1 AND no_d_id = $2 AND no_o_id = $3";

    WarehouseYear: "SELECT w_ytd FROM warehouse WHERE w_id = $1";
    DistrictsYear: "SELECT CAST(sum(d_ytd) AS BIGINT) FROM district WHERE d_w_id = $1";
    OrdersLast: "SELECT max(o_id) FROM orders WHERE o_w_id = $1 AND o_d_id = $2";
    NewOrders: "SELECT count(*), min(no_o_id), max(no_o_id) FROM new_order WHERE no_w_id = $1 AND no_d_id = $2";
}
