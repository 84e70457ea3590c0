import { type RawBuilder, sql } from 'kysely'
import type { Db } from '../store.ts'

type Columns = readonly string[]

async function index({ schema }: Db, name: string, table: string, columns: Columns, rows?: RawBuilder<boolean>): Promise<void> {
  const created = schema
    .createIndex(name)
    .on(table)
    .columns([...columns])
  await (rows === undefined ? created : created.where(rows)).execute()
}

const present = sql<boolean>`deleted_at is null`

/** Creates the tables of the first release. A released migration is never changed: later changes get their own files. */
export async function up(db: Db): Promise<void> {
  const { schema } = db

  await schema
    .createTable('epoch')
    .addColumn('id', 'integer', (column) => column.primaryKey().check(sql`id = 1`))
    .addColumn('value', 'bigint', (column) => column.notNull())
    .addColumn('version', 'text', (column) => column.notNull())
    .execute()
  await sql`insert into epoch (id, value, version) values (1, 0, '')`.execute(db)

  await schema
    .createTable('snapshot_sections')
    .addColumn('region', 'text', (column) => column.notNull())
    .addColumn('section', 'text', (column) => column.notNull())
    .addColumn('version', 'text', (column) => column.notNull())
    .addPrimaryKeyConstraint('snapshot_sections_key', ['region', 'section'])
    .execute()

  await schema
    .createTable('accounts')
    .addColumn('id', 'text', (column) => column.primaryKey())
    .addColumn('name', 'text', (column) => column.notNull())
    .addColumn('external_id', 'text', (column) => column.notNull().unique())
    .addColumn('created_at', 'bigint', (column) => column.notNull())
    .execute()
  await index(db, 'accounts_by_age', 'accounts', ['created_at', 'id'])

  await schema
    .createTable('api_keys')
    .addColumn('id', 'text', (column) => column.primaryKey())
    .addColumn('account_id', 'text', (column) => column.notNull().references('accounts.id'))
    .addColumn('name', 'text', (column) => column.notNull())
    .addColumn('prefix', 'text', (column) => column.notNull())
    .addColumn('hash', 'text', (column) => column.notNull().unique())
    .addColumn('scopes', 'text', (column) => column.notNull())
    .addColumn('created_at', 'bigint', (column) => column.notNull())
    .addColumn('revoked_at', 'bigint')
    .execute()
  await index(db, 'api_keys_by_account', 'api_keys', ['account_id', 'created_at desc', 'id'])
  await index(db, 'api_keys_by_revocation', 'api_keys', ['revoked_at'])
  // The shard of an id in snapshot sections: store/cluster/section-versions.ts.
  await sql`create index api_keys_by_shard on api_keys ((substr(id, 35, 2)))`.execute(db)

  await schema
    .createTable('signing_keys')
    .addColumn('kid', 'text', (column) => column.primaryKey())
    .addColumn('private_jwk', 'text', (column) => column.notNull())
    .addColumn('created_at', 'bigint', (column) => column.notNull())
    .execute()

  await schema
    .createTable('secrets')
    .addColumn('name', 'text', (column) => column.primaryKey())
    .addColumn('value', 'text', (column) => column.notNull())
    .execute()
  await createDestinationTable(db)
  await createEndpointTables(db)
  await createViewTables(db)
  await createNodeTables(db)
  await createCommitTables(db)
}

async function createDestinationTable(db: Db): Promise<void> {
  const { schema } = db
  await schema
    .createTable('destinations')
    .addColumn('id', 'text', (column) => column.primaryKey())
    .addColumn('account_id', 'text', (column) => column.notNull().references('accounts.id'))
    .addColumn('name', 'text', (column) => column.notNull())
    .addColumn('bucket', 'text', (column) => column.notNull())
    .addColumn('prefix', 'text', (column) => column.notNull())
    .addColumn('region', 'text', (column) => column.notNull())
    .addColumn('role_arn', 'text', (column) => column.notNull())
    .addColumn('kms_key_arn', 'text')
    .addColumn('path_style', 'integer', (column) => column.notNull())
    .addColumn('status', 'text', (column) => column.notNull().check(sql`status in ('pending', 'valid')`))
    .addColumn('validated_at', 'bigint')
    .addColumn('last_error', 'text')
    .addColumn('revision', 'bigint', (column) => column.notNull())
    .addColumn('validation_claimed_at', 'bigint')
    .addColumn('created_at', 'bigint', (column) => column.notNull())
    .addColumn('updated_at', 'bigint', (column) => column.notNull())
    .addUniqueConstraint('destinations_name', ['account_id', 'name'])
    .addUniqueConstraint('destinations_owner', ['account_id', 'id'])
    .execute()
  await index(db, 'destinations_by_account', 'destinations', ['account_id', 'created_at desc', 'id'])
}

async function createEndpointTables(db: Db): Promise<void> {
  const { schema } = db
  await schema
    .createTable('endpoints')
    .addColumn('id', 'text', (column) => column.primaryKey())
    .addColumn('account_id', 'text', (column) => column.notNull().references('accounts.id'))
    .addColumn('region', 'text', (column) => column.notNull())
    .addColumn('label', 'text', (column) => column.notNull())
    .addColumn('desired_state', 'text', (column) =>
      column.notNull().check(sql`desired_state in ('active', 'paused', 'draining')`),
    )
    .addColumn('segment_bytes', 'bigint')
    .addColumn('segment_max_age_seconds', 'bigint')
    .addColumn('output_formats', 'text')
    .addColumn('mqtt_config', 'text')
    .addColumn('destination_id', 'text')
    .addColumn('since_epoch', 'bigint', (column) => column.notNull())
    .addColumn('draining_at', 'bigint')
    .addColumn('draining_epoch', 'bigint')
    .addColumn('deleted_at', 'bigint')
    .addColumn('created_at', 'bigint', (column) => column.notNull())
    .addUniqueConstraint('endpoints_label', ['region', 'label'])
    .addUniqueConstraint('endpoints_owner', ['account_id', 'id'])
    // Both columns: an endpoint can't deliver to the destination of another account.
    .addForeignKeyConstraint(
      'endpoints_destination',
      ['account_id', 'destination_id'],
      'destinations',
      ['account_id', 'id'],
      (key) => key.onDelete('restrict'),
    )
    .execute()
  await index(db, 'endpoints_by_account', 'endpoints', ['account_id', 'created_at desc', 'id'], present)
  await index(db, 'endpoints_by_state', 'endpoints', ['account_id', 'desired_state', 'created_at desc', 'id'], present)
  await index(db, 'endpoints_by_region', 'endpoints', ['region', 'account_id'], present)
  await sql`create index endpoints_by_shard on endpoints (region, (substr(id, 35, 2))) where deleted_at is null`.execute(db)
  await index(
    db,
    'endpoints_draining',
    'endpoints',
    ['draining_at'],
    sql<boolean>`desired_state = 'draining' and deleted_at is null`,
  )
  await index(db, 'endpoints_by_destination', 'endpoints', ['account_id', 'destination_id'])
}

async function createViewTables(db: Db): Promise<void> {
  const { schema } = db
  await schema
    .createTable('views')
    .addColumn('id', 'text', (column) => column.primaryKey())
    .addColumn('account_id', 'text', (column) => column.notNull().references('accounts.id'))
    .addColumn('name', 'text', (column) => column.notNull())
    .addColumn('version', 'integer', (column) => column.notNull().check(sql`version >= 1`))
    .addColumn('definition', 'text', (column) => column.notNull())
    .addColumn('format', 'text', (column) => column.notNull())
    .addColumn('status', 'text', (column) => column.notNull().check(sql`status in ('draft', 'published', 'archived')`))
    .addColumn('description', 'text', (column) => column.notNull())
    .addColumn('tags', 'text', (column) => column.notNull())
    .addColumn('created_by', 'text', (column) => column.notNull())
    .addColumn('created_at', 'bigint', (column) => column.notNull())
    .addColumn('published_at', 'bigint')
    .addUniqueConstraint('views_version', ['account_id', 'name', 'version'])
    .addUniqueConstraint('views_owner', ['account_id', 'id'])
    .execute()
  await index(db, 'views_by_account', 'views', ['account_id', 'created_at desc', 'id'])
  await sql`create index views_by_shard on views ((substr(id, 35, 2)))`.execute(db)
  await index(db, 'views_by_status', 'views', ['account_id', 'status', 'created_at desc', 'id'])

  // A copy of the tags, one per row, to filter by: the JSON functions of the two databases differ.
  await schema
    .createTable('view_tags')
    .addColumn('view_id', 'text', (column) => column.notNull().references('views.id').onDelete('cascade'))
    .addColumn('tag', 'text', (column) => column.notNull())
    .addPrimaryKeyConstraint('view_tags_key', ['view_id', 'tag'])
    .execute()

  await schema
    .createTable('bindings')
    .addColumn('id', 'text', (column) => column.primaryKey())
    .addColumn('account_id', 'text', (column) => column.notNull())
    .addColumn('endpoint_id', 'text', (column) => column.notNull())
    .addColumn('view_id', 'text', (column) => column.notNull())
    .addColumn('is_required', 'integer', (column) => column.notNull())
    .addColumn('activated_at', 'bigint', (column) => column.notNull())
    .addColumn('activated_by', 'text', (column) => column.notNull())
    .addColumn('deactivated_at', 'bigint')
    .addColumn('canary_start_ts', 'bigint')
    .addForeignKeyConstraint('bindings_endpoint', ['account_id', 'endpoint_id'], 'endpoints', ['account_id', 'id'])
    .addForeignKeyConstraint('bindings_view', ['account_id', 'view_id'], 'views', ['account_id', 'id'])
    .execute()
  await schema
    .createIndex('bindings_active_once')
    .unique()
    .on('bindings')
    .columns(['endpoint_id', 'view_id'])
    .where(sql.ref('deactivated_at'), 'is', null)
    .execute()
  await index(db, 'bindings_by_endpoint', 'bindings', ['endpoint_id', 'activated_at desc', 'id'])
  await index(db, 'bindings_by_view', 'bindings', ['view_id', 'deactivated_at'])
}

/**
 * Creates the tables for reports of nodes. They have no foreign keys to resources: a report about an endpoint that this database
 * lost (restored from an older backup) must still be recorded, or its node would retry it forever and deliver nothing after it.
 */
async function createNodeTables(db: Db): Promise<void> {
  const { schema } = db
  await schema
    .createTable('nodes')
    .addColumn('id', 'text', (column) => column.primaryKey())
    .addColumn('region', 'text', (column) => column.notNull())
    .addColumn('ipv4', 'text', (column) => column.notNull())
    .addColumn('ipv6', 'text', (column) => column.notNull())
    .addColumn('ingest_address', 'text', (column) => column.notNull())
    .addColumn('registered_at', 'bigint', (column) => column.notNull())
    .execute()
  await schema.createIndex('nodes_by_region').on('nodes').columns(['region', 'id']).execute()

  await schema
    .createTable('node_processes')
    .addColumn('node_id', 'text', (column) => column.notNull().references('nodes.id').onDelete('cascade'))
    .addColumn('process', 'text', (column) => column.notNull().check(sql`process in ('ingest', 'delivery')`))
    .addColumn('applied_epoch', 'bigint', (column) => column.notNull())
    .addColumn('healthy', 'integer', (column) => column.notNull())
    .addColumn('reasons', 'text', (column) => column.notNull())
    .addColumn('last_seen_at', 'bigint', (column) => column.notNull())
    .addColumn('healthy_at', 'bigint')
    .addPrimaryKeyConstraint('node_processes_key', ['node_id', 'process'])
    .execute()

  await schema
    .createTable('endpoint_lags')
    .addColumn('endpoint_id', 'text', (column) => column.notNull())
    .addColumn('node_id', 'text', (column) => column.notNull().references('nodes.id').onDelete('cascade'))
    .addColumn('undelivered_segments', 'bigint', (column) => column.notNull())
    .addColumn('undelivered_bytes', 'bigint', (column) => column.notNull())
    .addColumn('oldest_sealed_at', 'bigint')
    .addColumn('blocked_by', 'text')
    .addPrimaryKeyConstraint('endpoint_lags_key', ['endpoint_id', 'node_id'])
    .execute()
  await schema.createIndex('endpoint_lags_by_node').on('endpoint_lags').column('node_id').execute()
}

/** The tables of what nodes delivered. */
async function createCommitTables({ schema }: Db): Promise<void> {
  await schema
    .createTable('commits')
    .addColumn('id', 'text', (column) => column.primaryKey())
    .addColumn('endpoint_id', 'text', (column) => column.notNull())
    .addColumn('node_id', 'text', (column) => column.notNull())
    .addColumn('log', 'text', (column) => column.notNull())
    .addColumn('seq', 'bigint', (column) => column.notNull())
    .addColumn('records', 'bigint', (column) => column.notNull())
    .addColumn('wal_bytes', 'bigint', (column) => column.notNull())
    .addColumn('duration_ms', 'bigint', (column) => column.notNull())
    .addColumn('sealed_at', 'bigint', (column) => column.notNull())
    .addColumn('uploaded_at', 'bigint', (column) => column.notNull())
    .addColumn('destination_id', 'text', (column) => column.notNull())
    .addColumn('bucket', 'text', (column) => column.notNull())
    .addColumn('region', 'text', (column) => column.notNull())
    .addColumn('artifacts', 'text', (column) => column.notNull())
    .execute()
  await schema.createIndex('commits_in_order').unique().on('commits').columns(['endpoint_id', 'uploaded_at']).execute()

  await schema
    .createTable('commit_heads')
    .addColumn('endpoint_id', 'text', (column) => column.primaryKey())
    .addColumn('uploaded_at', 'bigint', (column) => column.notNull())
    .execute()

  await schema
    .createTable('committed_seqs')
    .addColumn('node_id', 'text', (column) => column.notNull())
    .addColumn('endpoint_id', 'text', (column) => column.notNull())
    .addColumn('seq', 'bigint', (column) => column.notNull())
    .addPrimaryKeyConstraint('committed_seqs_key', ['node_id', 'endpoint_id'])
    .execute()
  await createQualityTables(schema)
}

async function createQualityTables(schema: Db['schema']): Promise<void> {
  await schema
    .createTable('dlq_files')
    .addColumn('commit_id', 'text', (column) => column.notNull().references('commits.id').onDelete('cascade'))
    .addColumn('view_id', 'text', (column) => column.notNull())
    .addColumn('endpoint_id', 'text', (column) => column.notNull())
    .addColumn('segment_seq', 'bigint', (column) => column.notNull())
    .addColumn('destination_id', 'text', (column) => column.notNull())
    .addColumn('s3_bucket', 'text', (column) => column.notNull())
    .addColumn('s3_key', 'text', (column) => column.notNull())
    .addColumn('region', 'text', (column) => column.notNull())
    .addColumn('bytes', 'bigint', (column) => column.notNull())
    .addColumn('rows', 'bigint', (column) => column.notNull())
    .addColumn('created_at', 'bigint', (column) => column.notNull())
    .addPrimaryKeyConstraint('dlq_files_key', ['commit_id', 'view_id'])
    .execute()
  await schema.createIndex('dlq_files_by_view').on('dlq_files').columns(['view_id', 'created_at desc', 'commit_id']).execute()

  await schema
    .createTable('view_counters')
    .addColumn('view_id', 'text', (column) => column.notNull())
    .addColumn('endpoint_id', 'text', (column) => column.notNull())
    .addColumn('bucket_start', 'bigint', (column) => column.notNull())
    .addColumn('processed', 'bigint', (column) => column.notNull())
    .addColumn('accepted', 'bigint', (column) => column.notNull())
    .addColumn('dropped', 'bigint', (column) => column.notNull())
    .addColumn('dlq', 'bigint', (column) => column.notNull())
    .addColumn('cast_nulls', 'bigint', (column) => column.notNull())
    .addColumn('errors', 'bigint', (column) => column.notNull())
    .addPrimaryKeyConstraint('view_counters_key', ['view_id', 'endpoint_id', 'bucket_start'])
    .execute()
  await schema.createIndex('view_counters_by_age').on('view_counters').column('bucket_start').execute()

  await schema
    .createTable('view_totals')
    .addColumn('view_id', 'text', (column) => column.notNull())
    .addColumn('endpoint_id', 'text', (column) => column.notNull())
    .addColumn('processed', 'bigint', (column) => column.notNull())
    .addColumn('accepted', 'bigint', (column) => column.notNull())
    .addColumn('dropped', 'bigint', (column) => column.notNull())
    .addColumn('dlq', 'bigint', (column) => column.notNull())
    .addColumn('cast_nulls', 'bigint', (column) => column.notNull())
    .addColumn('errors', 'bigint', (column) => column.notNull())
    .addColumn('last_error_at', 'bigint')
    .addColumn('last_error_code', 'text')
    .addColumn('last_error_message', 'text')
    .addColumn('updated_at', 'bigint', (column) => column.notNull())
    .addPrimaryKeyConstraint('view_totals_key', ['view_id', 'endpoint_id'])
    .execute()
}
