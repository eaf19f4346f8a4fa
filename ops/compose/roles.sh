#!/bin/sh
# The logins of docs/accounts.md, made when the database is empty. The image of Postgres runs this file.
set -eu
psql --username=postgres --set=ON_ERROR_STOP=1 \
  --set=owner="$OWNER_PASSWORD" --set=dashboard="$DASHBOARD_PASSWORD" --set=edge="$EDGE_PASSWORD" <<'SQL'
create role touchdown_control nologin;
create role touchdown_edge nologin;
create role touchdown_owner login password :'owner';
create role dashboard login password :'dashboard' in role touchdown_control;
create role edge login password :'edge' in role touchdown_edge;
create database touchdown owner touchdown_owner;
SQL
