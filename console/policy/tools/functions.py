"""Functions of databases by what they do: those that only compute, and sqlglot's own that do more. Any other may do anything."""

from console.policy.tools.words import words

HARMLESS = words(
    # PostgreSQL: text, numbers, dates, JSON, arrays, ranges, full text
    "lower upper length substr substring trim btrim ltrim rtrim lpad rpad replace translate position strpos left right reverse repeat",
    "split_part initcap concat concat_ws format quote_ident quote_literal quote_nullable string_to_array array_to_string string_agg",
    "starts_with ascii chr md5 sha224 sha256 sha384 sha512 encode decode to_hex to_ascii regexp_replace regexp_match regexp_matches",
    "regexp_split_to_array regexp_split_to_table regexp_count regexp_instr regexp_like regexp_substr normalize unistr overlay",
    "octet_length bit_length char_length abs ceil ceiling floor round trunc sqrt cbrt power pow exp ln log log10 log2 mod sign div",
    "gcd lcm random pi degrees radians sin cos tan width_bucket scale min_scale trim_scale factorial greatest least coalesce nullif",
    "count sum avg min max stddev variance corr to_char to_date to_number to_timestamp now date_part date_trunc date_bin age extract",
    "make_date make_time make_timestamp make_timestamptz make_interval isfinite justify_days justify_hours justify_interval",
    "clock_timestamp statement_timestamp transaction_timestamp timeofday json_build_object json_build_array json_object",
    "json_array_length json_array_elements json_array_elements_text json_each json_each_text json_extract_path json_extract_path_text",
    "json_object_keys json_typeof json_populate_record json_to_record json_to_recordset json_strip_nulls json_agg json_object_agg",
    "jsonb_agg jsonb_object_agg jsonb_build_object jsonb_build_array jsonb_array_length jsonb_array_elements",
    "jsonb_array_elements_text jsonb_each jsonb_each_text jsonb_extract_path jsonb_extract_path_text jsonb_object_keys jsonb_typeof",
    "jsonb_set jsonb_insert jsonb_pretty jsonb_path_query jsonb_path_exists jsonb_path_query_array jsonb_path_query_first",
    "jsonb_path_match jsonb_to_record jsonb_to_recordset jsonb_strip_nulls to_json to_jsonb row_to_json array_to_json array_agg",
    "array_append array_cat array_dims array_fill array_length array_lower array_ndims array_position array_positions array_prepend",
    "array_remove array_replace array_upper cardinality unnest generate_series generate_subscripts lower_inc upper_inc isempty",
    "range_merge bool_and bool_or every bit_and bit_or bit_xor mode percentile_cont percentile_disc rank dense_rank percent_rank",
    "cume_dist row_number ntile lag lead first_value last_value nth_value grouping regr_slope to_tsvector to_tsquery plainto_tsquery",
    "phraseto_tsquery websearch_to_tsquery ts_rank ts_rank_cd ts_headline similarity word_similarity levenshtein soundex metaphone",
    "unaccent gen_random_uuid uuid_generate_v4 version current_database current_schema current_schemas current_user num_nulls",
    "num_nonnulls row pg_typeof xmlagg st_distance st_dwithin st_contains st_within st_intersects st_x st_y st_astext st_asgeojson",
    "st_makepoint st_setsrid st_area st_length st_buffer st_transform st_point st_geomfromtext",
    # PostgreSQL: what a schema, its sizes and its rights are
    "pg_size_pretty pg_total_relation_size pg_table_size pg_relation_size pg_indexes_size pg_database_size pg_get_constraintdef",
    "pg_get_indexdef pg_get_viewdef pg_get_functiondef pg_get_expr pg_get_userbyid pg_get_function_arguments pg_get_function_result",
    "pg_get_triggerdef pg_get_serial_sequence format_type obj_description col_description shobj_description current_setting",
    "has_table_privilege has_schema_privilege has_database_privilege has_column_privilege pg_table_is_visible to_regclass to_regtype",
    "pg_backend_pid pg_encoding_to_char pg_stat_get_live_tuples pg_is_in_recovery pg_postmaster_start_time inet_client_addr",
    "txid_current_if_assigned pg_column_size pg_blocking_pids",
    # MySQL, MariaDB
    "ifnull if isnull date_format str_to_date from_unixtime unix_timestamp curdate curtime sysdate utc_timestamp adddate subdate",
    "date_add date_sub datediff timediff timestampdiff timestampadd dayname dayofmonth dayofweek dayofyear hour minute second day",
    "week month quarter year last_day monthname weekday yearweek date time timestamp group_concat find_in_set field elt",
    "substring_index instr locate lcase ucase mid space strcmp hex unhex bin oct conv crc32 sha1 sha2 json_extract json_unquote",
    "json_contains json_contains_path json_array json_keys json_length json_search json_type json_valid json_value json_overlaps",
    "json_objectagg json_arrayagg any_value truncate rand format_bytes inet_aton inet_ntoa uuid database schema user connection_id",
    "found_rows bit_count character_length to_days period_diff period_add sec_to_time time_to_sec makedate maketime quote to_base64",
    "from_base64 export_set make_set",
    # SQLite
    "strftime datetime julianday unixepoch printf iif likely unlikely total typeof glob like zeroblob changes last_insert_rowid",
    "total_changes sqlite_version json json_set json_insert json_replace json_remove json_patch json_quote json_tree json_group_array",
    "json_group_object json_error_position pragma_table_info pragma_table_xinfo pragma_index_list pragma_index_info",
    "pragma_foreign_key_list pragma_table_list pragma_database_list snippet highlight bm25 fts5vocab char unicode subtype",
    # SQL Server
    "len charindex patindex stuff replicate isnumeric isdate getdate getutcdate sysdatetime sysutcdatetime dateadd datename datepart",
    "datefromparts eomonth convert try_convert try_cast parse try_parse choose string_split string_escape json_query json_modify",
    "isjson object_id object_name object_definition schema_name schema_id col_name type_name db_name db_id user_name suser_sname",
    "serverproperty databasepropertyex columnproperty objectproperty indexproperty newid checksum binary_checksum hashbytes quotename",
    "str square count_big stdev stdevp var varp scope_identity ident_current original_login host_name app_name datalength",
    "formatmessage",
    # BigQuery, Snowflake, ClickHouse, DuckDB, Oracle
    "safe_divide safe_cast parse_date parse_timestamp parse_datetime format_date format_timestamp timestamp_trunc datetime_trunc",
    "date_diff timestamp_diff timestamp_seconds timestamp_millis approx_count_distinct approx_quantiles array_concat to_json_string",
    "json_query_array json_value_array net_host regexp_contains regexp_extract regexp_extract_all farm_fingerprint countif",
    "logical_and logical_or iff nvl nvl2 zeroifnull nullifzero to_varchar to_variant parse_json try_parse_json get_path object_keys",
    "flatten listagg median ratio_to_report tostring toint32 toint64 tofloat64 todate todatetime tostartofday tostartofhour",
    "tostartofmonth tostartofweek toyyyymm uniq uniqexact uniqcombined quantile quantiles topk argmax argmin grouparray",
    "groupuniqarray arrayjoin has hasany empty notempty formatreadablesize sumif avgif list_aggregate list_contains struct_pack",
    "strptime epoch epoch_ms add_months months_between sys_guid wm_concat instrb lengthb",
)
"""Lower case. A function of one's own in another schema is not taken for it."""
WITH_EFFECTS = words(
    "nextvaluefor readcsv readparquet tofile predict netfunc secret dynamicidentifier featuresattime vectorsearch generatebool",
    "generatedouble generateembedding generateint generatetable generatetext aiagg aiclassify aiembed aiforecast aigenerate",
    "aisimilarity aisummarizeagg mlforecast mltranslate",
)
"""Keys of sqlglot's own functions that count up, read files or the network, call a model, or run other SQL."""
