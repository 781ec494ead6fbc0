-- Ledgers in a PostgreSQL database: one schema, its two tables, and two roles.
--
-- skdp runs this file when the first study of a database is created. An administrator may run it before:
--   psql --single-transaction -v ON_ERROR_STOP=1 -f postgres.sql DATABASE
-- The role that runs it owns the schema. Only the owner creates studies. It needs CREATE on the database, and CREATEROLE unless
-- the two roles exist. Give people the roles: GRANT skdp_charge TO alice; GRANT skdp_read TO bob;

SET LOCAL search_path = pg_catalog, pg_temp;  -- no name below leads to an object of somebody else

DO $$
BEGIN
  IF getdatabaseencoding() <> 'UTF8' THEN
    RAISE EXCEPTION 'the database has the encoding %; expected UTF8 (CREATE DATABASE ... ENCODING ''UTF8'' TEMPLATE template0)',
      getdatabaseencoding();
  END IF;
END $$;

CREATE SCHEMA skdp_ledger;

CREATE TABLE skdp_ledger.studies (
  study text PRIMARY KEY,
  facts text NOT NULL,  -- the ceiling and the identity; never changed
  head text NOT NULL    -- authenticates the last entry
);

CREATE TABLE skdp_ledger.entries (
  study text NOT NULL REFERENCES skdp_ledger.studies,
  number integer NOT NULL,
  content text NOT NULL,
  chain text NOT NULL,
  PRIMARY KEY (study, number)
);

-- Entries, and facts of studies, stay as they were written, also if the owner errs.
CREATE FUNCTION skdp_ledger.refuse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION 'rows of a ledger are only appended';
END $$;
CREATE TRIGGER only_appended BEFORE UPDATE OR DELETE OR TRUNCATE ON skdp_ledger.entries
  FOR EACH STATEMENT EXECUTE FUNCTION skdp_ledger.refuse();
CREATE TRIGGER never_deleted BEFORE DELETE OR TRUNCATE ON skdp_ledger.studies
  FOR EACH STATEMENT EXECUTE FUNCTION skdp_ledger.refuse();
CREATE TRIGGER never_changed BEFORE UPDATE OF study, facts ON skdp_ledger.studies
  FOR EACH STATEMENT EXECUTE FUNCTION skdp_ledger.refuse();

-- Wait until no other transaction holds the row of the study, and hold it to the end of this transaction.
CREATE FUNCTION skdp_ledger.hold(name text) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  PERFORM 1 FROM skdp_ledger.studies WHERE study = name FOR UPDATE;
END $$;

-- Append the next entry of a study, as the person who is logged in, now. Without a key, hashes are checked here, too.
CREATE FUNCTION skdp_ledger.append(name text, place integer, entry text, hash text, new_head text) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  known skdp_ledger.studies;
  last skdp_ledger.entries;
  said json := entry;
  moment timestamptz := said ->> 'time';
BEGIN
  SELECT * INTO STRICT known FROM skdp_ledger.studies WHERE study = name FOR UPDATE;
  SELECT * INTO last FROM skdp_ledger.entries WHERE study = name ORDER BY number DESC LIMIT 1;
  IF known.head LIKE 'mov% to %' THEN
    RAISE EXCEPTION 'the study was %', split_part(known.head, chr(10), 1);
  ELSIF (place = coalesce(last.number, 0) + 1 AND (said -> 'number')::text = place::text) IS NOT TRUE THEN
    RAISE EXCEPTION 'another number was expected';
  ELSIF said ->> 'user' IS DISTINCT FROM session_user THEN
    RAISE EXCEPTION 'the entry is in the name of another user';
  ELSIF (said ->> 'time' ~ '^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}[.][0-9]{3}[+]00:00$'  -- as it is shown
         AND moment BETWEEN clock_timestamp() - interval '2 minutes' AND clock_timestamp()) IS NOT TRUE THEN
    RAISE EXCEPTION 'the entry has another time than the server';
  ELSIF (SELECT bool_and(json_typeof(said #> ARRAY['charge', part]) = 'number'
                         AND (said #>> ARRAY['charge', part])::float8 BETWEEN 0 AND 1e9)
         FROM unnest(ARRAY['epsilon', 'delta', 'mu', 'slack']) AS part) IS NOT TRUE THEN
    RAISE EXCEPTION 'a charge is below 0';
  ELSIF known.facts::json ->> 'key' IS NULL AND (
      hash = encode(sha256(convert_to(
        coalesce(last.chain, encode(sha256(convert_to(chr(10) || known.facts, 'UTF8')), 'hex')) || chr(10) || entry, 'UTF8')), 'hex')
      AND new_head = hash) IS NOT TRUE THEN
    RAISE EXCEPTION 'the hash is wrong';
  END IF;
  INSERT INTO skdp_ledger.entries VALUES (name, place, entry, hash);
  UPDATE skdp_ledger.studies SET head = new_head WHERE study = name;
END $$;

DO $$
BEGIN
  IF NOT EXISTS (SELECT FROM pg_catalog.pg_roles WHERE rolname = 'skdp_charge') THEN
    CREATE ROLE skdp_charge NOLOGIN;
  END IF;
  IF NOT EXISTS (SELECT FROM pg_catalog.pg_roles WHERE rolname = 'skdp_read') THEN
    CREATE ROLE skdp_read NOLOGIN;
  END IF;
END $$;

-- Nobody else has rights here, whatever default privileges the owner has.
DO $$
DECLARE
  person text;
BEGIN
  FOR person IN SELECT 'PUBLIC' UNION SELECT quote_ident(rolname) FROM pg_catalog.pg_default_acl, aclexplode(defaclacl)
                JOIN pg_catalog.pg_roles ON pg_roles.oid = grantee WHERE rolname <> current_user LOOP
    EXECUTE format('REVOKE ALL ON SCHEMA skdp_ledger FROM %s', person);
    EXECUTE format('REVOKE ALL ON ALL TABLES IN SCHEMA skdp_ledger FROM %s', person);
    EXECUTE format('REVOKE ALL ON ALL FUNCTIONS IN SCHEMA skdp_ledger FROM %s', person);
  END LOOP;
END $$;
GRANT USAGE ON SCHEMA skdp_ledger TO skdp_charge, skdp_read;
GRANT SELECT ON skdp_ledger.studies, skdp_ledger.entries TO skdp_charge, skdp_read;
GRANT EXECUTE ON FUNCTION skdp_ledger.hold, skdp_ledger.append TO skdp_charge;
