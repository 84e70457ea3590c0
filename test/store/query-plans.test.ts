/** Lists for clients must find their rows by an index: checked with the query planners of the databases. */
import { CompiledQuery, type InsertObject, type KyselyPlugin, type PluginTransformQueryArgs, sql } from 'kysely'
import { expect } from 'vitest'
import { newId } from '#model/id.ts'
import { deliveredLookupMax } from '#model/limits.ts'
import type { UsageReport } from '#model/node-protocol.ts'
import { dayOf } from '#model/quota.ts'
import { seriesWindow } from '#model/series.ts'
import { listLargestUse, recordUsage, removeUsageBefore, sumUsage } from '#store/accounts/account-usage.ts'
import { listApiKeys } from '#store/accounts/api-keys.ts'
import {
  eventOutsideApi,
  listAuditEvents,
  removeAuditEventsBefore,
  removeAuditEventsBeyond,
} from '#store/accounts/audit-events.ts'
import { countUse, readQuotaUse } from '#store/accounts/quotas.ts'
import { countRunningRevocations, findRevocations, listRunningRevocations } from '#store/accounts/revocations.ts'
import { listSecretNames, listSecrets, selectValuesOfViews } from '#store/accounts/secrets.ts'
import { findCommit, listAddedArtifacts } from '#store/commits/commit-additions.ts'
import { findCommittingNode, removeCommitsBefore } from '#store/commits/commit-retention.ts'
import { findNeighbours, listCommits, listCommitsOf, listSegmentCommits, recordCommit } from '#store/commits/commits.ts'
import { deliveredFiles } from '#store/commits/delivered-files.ts'
import { listDlqFiles } from '#store/commits/dlq-files.ts'
import { addToJobs } from '#store/commits/late-segments.ts'
import {
  findLossOf,
  listLosses,
  listOpenLosses,
  listOpenLossesOfAccount,
  recordLosses,
  recoverLoss,
} from '#store/commits/losses.ts'
import { findMovedFiles } from '#store/commits/moved-files.ts'
import { findRecentRawParquet, listRawParquet } from '#store/commits/raw-parquet.ts'
import { findEndpointToSearch, listAccountsToSearch } from '#store/commits/unsearched-losses.ts'
import { findEndpointsWithViews, listBindingPage, listBindings } from '#store/endpoints/bindings.ts'
import { listDestinations } from '#store/endpoints/destinations.ts'
import {
  getEndpoint,
  listDrainingEndpoints,
  listEndpointFacts,
  listEndpoints,
  listUnprovisionedEndpoints,
} from '#store/endpoints/endpoints.ts'
import { listUnsettledBindings } from '#store/endpoints/unsettled-bindings.ts'
import { getView, listPublishedVersions, listViews } from '#store/endpoints/views.ts'
import { listCommitsToScrub, listEndpointsToScrub } from '#store/jobs/commits-to-scrub.ts'
import { areSourcesRead, listRemovable } from '#store/jobs/compactions.ts'
import { countCompactionJobs, listDueEndpoints, wasCanceledSince } from '#store/jobs/due-compactions.ts'
import { hasAvailableUnits, listAvailableUnits, listLeasedUnits } from '#store/jobs/job-units.ts'
import { insertJob, listJobReasons, listJobs, listRunningJobIds, removeJobFinishedBefore } from '#store/jobs/jobs.ts'
import { recordPublished, recordUnpublished, sendAgain } from '#store/naming/dns-records.ts'
import { listBlockedLogs, listBlockedLogsOfAccount, listDegradingLags, listLags } from '#store/nodes/node-reports.ts'
import { listNodesOnceIn, registerNode } from '#store/nodes/nodes.ts'
import { listRegionEndpoints, listRegionKeys, listRegionViews } from '#store/nodes/section-content.ts'
import type { Database } from '#store/schema.ts'
import { addCommitToSeries, listEndpointBuckets } from '#store/series/endpoint-series.ts'
import { removeOldestBucket } from '#store/series/series-retention.ts'
import { getViewMetrics, removeViewCountersBefore } from '#store/series/view-counters.ts'
import { getViewQuality, removeViewQualityBefore } from '#store/series/view-quality.ts'
import { listVersionSeries } from '#store/series/view-series.ts'
import { type Db, type Tx, transact } from '#store/store.ts'
import { type DatabaseKind, newStore, type TestStore } from '../support/databases.ts'
import { keyring } from '../support/keyring.ts'
import { useOne } from '../support/use-one.ts'
import { aCommit, aJob, anAccount, anOutcome, aPublishedView, aStoredEndpoint, describeStores, t0 } from './fixtures.ts'

const page = { limit: 50, offset: 0 }
const accounts = 20
const rowsPerAccount = 200

/** Returns the statements that `work` runs. */
async function statementsOf(db: Db, work: (db: Tx) => Promise<unknown>): Promise<readonly CompiledQuery[]> {
  const nodes: PluginTransformQueryArgs[] = []
  const watch: KyselyPlugin = {
    transformQuery(args) {
      nodes.push(args)
      return args.node
    },
    transformResult: async ({ result }) => result,
  }
  await work(db.withPlugin(watch) as Tx)
  return nodes.map(({ node, queryId }) => db.getExecutor().compileQuery(node, queryId))
}

/** Returns the query plan of every statement, one step per line. */
async function plansOf(store: TestStore, work: (db: Tx) => Promise<unknown>): Promise<string> {
  const explain = store.dialect === 'sqlite' ? 'explain query plan' : 'explain (costs off)'
  const plans: string[] = []
  for (const { sql: text, parameters } of await statementsOf(store.db, work)) {
    const { rows } = await store.db.executeQuery<Record<string, unknown>>(
      CompiledQuery.raw(`${explain} ${text}`, [...parameters]),
    )
    plans.push(rows.map((row) => row['detail'] ?? row['QUERY PLAN']).join('\n'))
  }
  return plans.join('\n\n')
}

/** Matches plans that read a whole table, or sort rows that an index could return in order. */
const wholeTable = (kind: DatabaseKind, table: string) =>
  new RegExp(kind === 'sqlite' ? `SCAN ${table}(?! USING)` : `Seq Scan on ${table}\\b`)
const sorting = (kind: DatabaseKind) => (kind === 'sqlite' ? /USE TEMP B-TREE FOR ORDER BY/ : /\bSort\b/)

function usageOf(account_id: string): UsageReport {
  const used = { account_id, day: dayOf(t0), bytes: 1, records: 1, records_per_second: 1 }
  return { node_id: newId(), run: 'a', accounts: [used] }
}

function commitWithQuality(endpoint: string, view: string) {
  const quality = { columns: [], sampled_records: 1, unmapped: [] }
  return aCommit(endpoint, 99_998, { views: [anOutcome(view, { quality })] })
}

/** Inserts many rows and collects statistics. Returns the first account and its resources. */
async function filled(kind: DatabaseKind) {
  const store = await newStore(kind)
  const { node_id } = aCommit('', 0)
  await registerNode(store.db, { node_id, region: 'loc', ipv4: [], ipv6: [], ingest_address: 'node:1' }, t0)
  const made: { account: string; endpoint: string; view: string; commit: string; job: string }[] = []
  for (let index = 0; index < accounts; index += 1) {
    const account = await anAccount(store)
    const endpoint = await aStoredEndpoint(store, account)
    const view = await aPublishedView(store, account)
    const commit = aCommit(endpoint.id, 0)
    await transact(store, (db) => recordCommit(db, commit, t0))
    const job = await transact(store, (db) => insertJob(db, account, aJob(endpoint.id, view.id), t0))
    made.push({ account, endpoint: endpoint.id, view: view.id, commit: commit.id, job: job.id })
    await multiply(store, { account, endpoint: endpoint.id, view: view.id })
  }
  await sql`analyze`.execute(store.db)
  const [first] = made
  if (first === undefined) throw new Error('nothing was made')
  return { store, ...first, [Symbol.asyncDispose]: () => store[Symbol.asyncDispose]() }
}

type Row = { readonly id: string; readonly at: number }

async function multiply(store: TestStore, { account, endpoint, view }: { account: string; endpoint: string; view: string }) {
  const rows = Array.from({ length: rowsPerAccount }, (_, index) => ({ id: newId(), at: t0 + 1 + index }))
  const destination = {
    account_id: account,
    bucket: 'lake',
    prefix: '',
    region: 'eu',
    role_arn: 'r',
    encryption: 'sse-s3',
    checksums: 'standard',
    path_style: 0,
  }
  const numbers = { bytes: 1, rows: 1 }
  const none = {
    processed: 1,
    accepted: 1,
    dropped: 0,
    dlq: 0,
    failed: 0,
    more_rows: 0,
    duplicates: 0,
    cast_nulls: 0,
    redriven: 0,
    errors: 0,
  }
  await transact(store, async (db) => {
    const insert = <Name extends keyof Database>(table: Name, rowOf: (row: Row, index: number) => InsertObject<Database, Name>) =>
      db.insertInto(table).values(rows.map(rowOf)).execute()
    const commit = await db.selectFrom('commits').selectAll().where('endpoint_id', '=', endpoint).executeTakeFirstOrThrow()
    const like = await db.selectFrom('endpoints').selectAll().where('id', '=', endpoint).executeTakeFirstOrThrow()
    const version = await db.selectFrom('views').selectAll().where('id', '=', view).executeTakeFirstOrThrow()
    await insert('destinations', ({ id, at }) => ({
      ...destination,
      id,
      name: id,
      status: 'valid',
      revision: 1,
      created_at: at,
      updated_at: at,
    }))
    await insert('api_keys', ({ id, at }) => ({
      ...{ id, account_id: account, name: 'ci', prefix: 'ing', hash: id, scopes: '[]' },
      created_at: at,
    }))
    await insert('endpoints', ({ id, at }) => ({ ...like, id, label: id, name: id, created_at: at }))
    await insert('views', ({ id, at }) => ({
      ...version,
      id,
      name: id,
      created_at: at,
      status: at % 2 === 0 ? 'draft' : 'archived',
    }))
    await insert('account_usage', ({ id }, index) => ({
      ...{ day: dayOf(t0 + index * 86_400_000), account_id: account, node_id: id, run: 'a' },
      ...{ bytes: 1, records: 1, records_per_second: 1, reported_at: t0 },
    }))
    await insert('commits', ({ id, at }) => ({ ...commit, id, seq: at, uploaded_at: at }))
    await insert('bindings', ({ id, at }) => ({
      ...{ id, account_id: account, endpoint_id: id, view_id: id, is_required: 0, activated_at: at, activated_by: 'ci' },
    }))
    await insert('dlq_files', ({ id, at }) => ({
      ...{ commit_id: id, view_id: view, endpoint_id: endpoint, segment_seq: at, destination_id: id, ...numbers },
      ...{ s3_bucket: 'lake', s3_key: id, region: 'eu', created_at: at, counted_at: at },
    }))
    await insert('view_counters', ({ at }) => ({ ...none, view_id: view, endpoint_id: endpoint, bucket_start: at }))
    await insert('view_quality', ({ at }) => ({ view_id: view, endpoint_id: endpoint, bucket_start: at, quality: '{}' }))
    await insert('endpoint_series', ({ id, at }) => ({ endpoint_id: id, step: '10s', bucket_start: at, counts: '{}', writes: 1 }))
    const noRows = { accepted: 0, dropped: 0, dlq: 0, failed: 0, more_rows: 0, duplicates: 0 }
    await insert('view_series', ({ id, at }) => ({ view_id: view, endpoint_id: id, step: '10s', bucket_start: at, ...noRows }))
    await insert('view_totals', ({ id, at }) => ({ ...none, view_id: view, endpoint_id: id, updated_at: at }))
    const job = await db.selectFrom('jobs').selectAll().where('endpoint_id', '=', endpoint).executeTakeFirstOrThrow()
    await insert('jobs', ({ id, at }) => ({ ...job, id, status: 'succeeded', created_at: at, finished_at: at }))
    await insert('job_units', ({ id, at }) => ({
      job_id: job.id,
      commit_id: id,
      view_id: view,
      number: at,
      status: 'done',
      deaths: 0,
    }))
    await insert('commit_additions', ({ id, at }) => ({
      commit_id: id,
      view_id: view,
      job_id: job.id,
      artifacts: '{}',
      added_at: at,
    }))
    await insert('committed_seqs', ({ id, at }) => ({ node_id: commit.node_id, endpoint_id: id, seq: at }))
    const zeros = {
      ...{ open_segments: 0, undelivered_segments: 1, parked_segments: 0, quarantined_segments: 0, closed: 0, scrub_findings: 0 },
    }
    await insert('endpoint_lags', ({ id }) => ({ node_id: commit.node_id, endpoint_id: id, ...zeros, undelivered_bytes: 1 }))
    const recovered = { segments: 1, segments_missing: 0, records_recovered: 1, bytes_recovered: 1, recovered_at: t0 }
    await insert('losses', ({ id, at }) => {
      const loss = { account_id: account, endpoint_id: endpoint, region: 'loc', bytes: 1, reported_at: t0, recorded_at: at }
      const seqs = { runs: '[]', segments_unknown: 0 }
      return { id, node_id: id, cause: 'node_removed', ...loss, ...recovered, ...seqs }
    })
    await insert('node_snapshots', ({ id, at }) => ({ node_id: commit.node_id, region: id, epoch: at }))
    await insert('audit_events', ({ id, at }) => {
      const operation = at % 2 === 0 ? 'createKey' : 'createView'
      const event = eventOutsideApi({ actor: 'cli', operation, account_id: account, resource_id: id }, at)
      return { ...event, result: at % 5 === 0 ? 'failed' : 'succeeded' }
    })
    const dns = { endpoint_id: endpoint, region: 'loc', target: 'here', published: '["192.0.2.1"]', failures: 0 }
    await insert('dns_records', ({ id }) => ({ ...dns, name: id, type: 'A', attempt: id }))
    const compaction = {
      account_id: account,
      kind: 'parquet',
      date: '2026-11-20',
      destination_id: newId(),
      bucket: 'lake',
      region: 'eu',
      prefix: '',
    }
    await insert('compactions', ({ id, at }) => ({
      ...compaction,
      id,
      endpoint_id: id,
      planned_at: at,
      published_at: at,
      file: '{}',
    }))
    const source = { kind: 'parquet', marker_id: 'm', first_row: 0, sha256: 'ab', ...numbers }
    await insert('compacted_artifacts', ({ id }) => ({ ...source, commit_id: id, compaction_id: id }))
    const sealed = { account_id: account, value: 'x', key_id: 'x', rotated_at: null }
    await insert('account_secrets', ({ id, at }) => ({ ...sealed, id, name: id, created_at: at }))
    await insert('view_secrets', ({ id }) => ({ view_id: view, account_id: account, name: id }))
    await insert('blocked_logs', ({ id }) => ({ node_id: commit.node_id, endpoint_id: id, reason: 'a reason' }))
  })
}

describeStores('query plans', (test, kind) => {
  const full = useOne(() => filled(kind), 120_000)

  test('no list reads a whole table or sorts its pages', async () => {
    const { store, account, endpoint, view, commit, job } = full()
    const commits = await plansOf(store, async (db) => {
      await listCommits(db, endpoint, { limit: 50 })
      await listRawParquet(db, endpoint, 50)
      await findRecentRawParquet(db, endpoint, t0, 50)
      const range = { since: new Date(t0).toISOString(), until: new Date(t0 + 100).toISOString() }
      for (const wanted of ['raw', { view_id: view }] as const) await deliveredFiles(db, endpoint, wanted, range, 50).next()
      await listCommits(db, endpoint, { limit: 50, before: new Date(t0 + 100).toISOString() })
      for (const after of [null, new Date(t0 + 100).toISOString()]) await listCommitsToScrub(db, endpoint, { after, limit: 50 })
    })
    expect(commits).toContain('commits_in_order')
    expect(commits).not.toMatch(wholeTable(kind, 'commits'))
    expect(commits).not.toMatch(sorting(kind))
    const segment = { node_id: aCommit('', 0).node_id, seq: 100 }
    expect(await plansOf(store, (db) => listSegmentCommits(db, endpoint, segment))).toContain('commits_by_segment')

    const { name } = await store.db.selectFrom('views').select('name').where('id', '=', view).executeTakeFirstOrThrow()
    const ofView = { account_id: account, name, endpoint_id: null }
    const lastHour = { created_after: new Date(t0).toISOString(), created_before: new Date(t0 + 3_600_000).toISOString() }
    const beyond = { result: 'failed', max: 10, limit: 10 } as const
    const after = { created_at: t0 + 100, commit_id: newId() }
    const paged: readonly [string, (db: Tx) => Promise<unknown>, string][] = [
      ['destinations', (db) => listDestinations(db, account, page), 'destinations_by_account'],
      ['endpoints', (db) => listEndpoints(db, account, page), 'endpoints_by_account'],
      ['endpoints', (db) => listEndpoints(db, account, page, { desired_states: ['paused'] }), 'endpoints_by_state'],
      ['endpoints', (db) => listDrainingEndpoints(db, t0, 100), 'endpoints_draining'],
      ['endpoints', (db) => listUnprovisionedEndpoints(db, 100), 'endpoints_unprovisioned'],
      ['api_keys', (db) => listApiKeys(db, account, page), 'api_keys_by_account'],
      ['views', (db) => listViews(db, account, {}, page), 'views_by_account'],
      ['views', (db) => listViews(db, account, { status: 'draft' }, page), 'views_by_status'],
      ['bindings', (db) => listBindings(db, account, endpoint), 'bindings_by_endpoint'],
      ['bindings', (db) => listBindingPage(db, account, endpoint, page), 'bindings_by_endpoint'],
      ['jobs', (db) => listJobs(db, account, page), 'jobs_by_account'],
      ['jobs', (db) => listRunningJobIds(db, 'loc', []), 'jobs_by_region'],
      ['dlq_files', (db) => listDlqFiles(db, view, { limit: 20 }), 'dlq_files_by_view'],
      ['dlq_files', (db) => listDlqFiles(db, view, { limit: 20, ...lastHour, after }), 'dlq_files_by_view'],
      ['dlq_files', (db) => listDlqFiles(db, view, { limit: 2, endpoint_id: endpoint }), 'dlq_files_by_endpoint'],
      ['audit_events', (db) => listAuditEvents(db, account, { limit: 50 }), 'audit_events_by_account'],
      ['audit_events', (db) => listAuditEvents(db, account, { limit: 50, before: newId() }), 'audit_events_by_account'],
      ['audit_events', (db) => listAuditEvents(db, account, { limit: 5, result: 'failed' }), 'audit_events_by_result'],
      ['audit_events', (db) => listAuditEvents(db, account, { limit: 5, operation: 'createKey' }), 'audit_events_by_operation'],
      ['audit_events', (db) => removeAuditEventsBeyond(db, account, beyond), 'audit_events_by_result'],
      ['audit_events', (db) => listAuditEvents(db, undefined, { limit: 50 }), 'audit_events'],
      ['job_units', (db) => listAvailableUnits(db, job, t0), 'job_units_in_order'],
      ['job_units', (db) => hasAvailableUnits(db, job, t0), 'job_units_in_order'],
      ['endpoints', (db) => listDueEndpoints(db, t0, '', 100), 'endpoints_compacting'],
    ]
    for (const [table, work, index] of paged) {
      const plans = await plansOf(store, work)
      expect(plans).toContain(index)
      expect(plans).not.toMatch(wholeTable(kind, table))
      expect(plans).not.toMatch(sorting(kind))
    }

    const segments = Array.from({ length: deliveredLookupMax }, (_, seq) => ({ endpoint_id: endpoint, node_id: newId(), seq }))
    const removable = { publishedUntil: t0, failedUntil: t0, except_views: ['events'] }
    const found: readonly [string, (db: Tx) => Promise<unknown>][] = [
      ['endpoints', (db) => getEndpoint(db, account, endpoint)],
      ['endpoints', (db) => listEndpointFacts(db, account)],
      ['endpoints', (db) => countUse(db, account, 'endpoints')],
      ['views', (db) => countUse(db, account, 'views')],
      ['views', (db) => countUse(db, account, 'view_versions')],
      ['api_keys', (db) => countUse(db, account, 'api_keys')],
      ['account_usage', (db) => readQuotaUse(db, account, t0)],
      ['endpoints', (db) => recordUsage(db, usageOf(account), t0)],
      ['account_usage', (db) => recordUsage(db, usageOf(account), t0)],
      ['account_usage', (db) => sumUsage(db, usageOf(account).accounts)],
      ['account_usage', (db) => listLargestUse(db, t0, 20)],
      ['account_usage', (db) => removeUsageBefore(db, t0 + 9 * 86_400_000)],
      ['views', (db) => getView(db, account, view)],
      ['views', (db) => listViews(db, account, { name: 'events' }, page)],
      ['views', (db) => listPublishedVersions(db, account, page)],
      ['view_counters', (db) => getViewMetrics(db, account, view, t0)],
      ['view_totals', (db) => getViewMetrics(db, account, view, t0)],
      ['endpoint_lags', (db) => getViewMetrics(db, account, view, t0)],
      ['view_quality', (db) => getViewQuality(db, view, endpoint, t0 + 2 * 86_400_000)],
      ['view_counters', (db) => removeViewCountersBefore(db, t0 + 100)],
      ['endpoint_series', (db) => listEndpointBuckets(db, endpoint, seriesWindow({}, t0))],
      ['endpoint_series', (db) => addCommitToSeries(db, aCommit(endpoint, 99_998), t0)],
      ['view_series', (db) => listVersionSeries(db, ofView, seriesWindow({}, t0))],
      ['endpoint_series', (db) => removeOldestBucket(db, 'endpoint_series', '10s', t0 + 100)],
      ['view_series', (db) => removeOldestBucket(db, 'view_series', '10s', t0 + 100)],
      ['view_quality', (db) => removeViewQualityBefore(db, t0 + 100)],
      ['commits', (db) => removeCommitsBefore(db, endpoint, t0 + 100, 10)],
      ['commits', (db) => listCommitsOf(db, segments)],
      ['committed_seqs', (db) => findCommittingNode(db, '', t0)],
      ['view_quality', (db) => recordCommit(db, commitWithQuality(endpoint, view), t0 + 120_000)],
      ['endpoint_lags', (db) => listLags(db, [endpoint])],
      ['api_keys', (db) => listRunningRevocations(db, 10)],
      ['api_keys', (db) => countRunningRevocations(db)],
      ['api_keys', (db) => findRevocations(db, account, [newId()], t0)],
      ['losses', (db) => listLosses(db, account, page)],
      ['losses', (db) => listOpenLosses(db, [endpoint])],
      ['losses', (db) => listOpenLossesOfAccount(db, account)],
      ['losses', (db) => findLossOf(db, endpoint, { node_id: newId(), seq: 1 })],
      ['losses', (db) => listAccountsToSearch(db, t0)],
      ['losses', (db) => findEndpointToSearch(db, { account_id: account, regions: ['loc'], after: '', before: t0 })],
      ['losses', (db) => recoverLoss(db, aCommit(endpoint, 99_997), t0)],
      ['commits', (db) => findNeighbours(db, endpoint, { node_id: newId(), seq: 1 })],
      ['commits', (db) => recordLosses(db, newId(), { cause: 'node_removed', credential_hash: null }, t0)],
      ['node_snapshots', (db) => listNodesOnceIn(db, ['loc'], [])],
      ['blocked_logs', (db) => listBlockedLogs(db, [endpoint])],
      ['endpoints', (db) => listBlockedLogsOfAccount(db, account)],
      ['endpoints', (db) => listDegradingLags(db, account, { sealedBefore: t0, reportedBefore: t0 })],
      ['commits', (db) => recordCommit(db, aCommit(endpoint, 99_999), t0 + 60_000)],
      ['commit_additions', (db) => listAddedArtifacts(db, [commit])],
      ['commit_additions', (db) => findCommit(db, commit)],
      ['job_units', (db) => listLeasedUnits(db, [newId()])],
      ['job_units', (db) => listJobReasons(db, job)],
      ['jobs', (db) => removeJobFinishedBefore(db, t0 + 100, 10)],
      ['jobs', (db) => listJobs(db, account, { ...page, endpoint_id: endpoint })],
      ['jobs', (db) => addToJobs(db, { id: newId(), endpoint_id: endpoint, sealedAt: t0 - 1, applied: [] })],
      ['jobs', (db) => wasCanceledSince(db, endpoint, t0)],
      ['jobs', (db) => countCompactionJobs(db, account)],
      ['compactions', (db) => listRemovable(db, endpoint, removable, 10)],
      ['compactions', (db) => findMovedFiles(db, [commit])],
      ['compacted_artifacts', (db) => findMovedFiles(db, [commit])],
      ['compacted_artifacts', (db) => listCommitsToScrub(db, endpoint, { after: null, limit: 1 })],
      ['endpoints', (db) => listEndpointsToScrub(db, { after: endpoint, region: 'loc', limit: 50 })],
      ['job_units', (db) => areSourcesRead(db, newId(), t0)],
      ['dns_records', (db) => recordPublished(db, newId(), { ttl: 30, removals: [], lingerMs: 1, now: t0 })],
      ['dns_records', (db) => recordUnpublished(db, newId(), { error: '', retryAt: t0, failures: null })],
      ['dns_records', (db) => sendAgain(db, [newId()])],
      ['bindings', (db) => findEndpointsWithViews(db, [endpoint])],
      ['bindings', (db) => listUnsettledBindings(db, t0, '', 100)],
      ['audit_events', (db) => removeAuditEventsBefore(db, t0 + 5, 10)],
      ['account_secrets', (db) => listSecrets(db, account, page)],
      ['view_secrets', (db) => listSecrets(db, account, page)],
      ['account_secrets', (db) => listSecretNames(db, account)],
      ['view_secrets', (db) => selectValuesOfViews(db).where('view_secrets.view_id', '=', view).execute()],
    ]
    for (const [table, work] of found) expect(await plansOf(store, work)).not.toMatch(wholeTable(kind, table))
  })

  test('a section of one region is read by its index', async () => {
    const { store, account } = full()
    await aStoredEndpoint(store, account, { region: 'fra' })
    await sql`analyze`.execute(store.db)
    const plans = await plansOf(store, async (db) => {
      await listRegionEndpoints(db, 'fra', ['3f'])
      await listRegionKeys(db, 'fra', ['3f'], t0)
      await listRegionViews(db, 'fra', ['3f'], keyring)
    })
    for (const index of ['endpoints_by_shard', 'api_keys_by_shard']) expect(plans).toContain(index)
    for (const table of ['endpoints', 'bindings', 'api_keys', 'views']) expect(plans).not.toMatch(wholeTable(kind, table))
  })
})
