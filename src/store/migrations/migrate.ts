/**
 * Migrates the tables to the schema of this release.
 *
 * Law: forward only, all or nothing, one process at a time. A database that a newer release migrated is not changed.
 */
import { sql } from 'kysely'
import { UserError } from '#lib/user-error.ts'
import { type Db, type Store, type Tx, transact } from '../store.ts'
import * as firstTables from './0001-first-tables.ts'
import * as jobs from './0002-jobs.ts'
import * as dlqFilesByEndpoint from './0003-dlq-files-by-endpoint.ts'
import * as viewQuality from './0004-view-quality.ts'
import * as damagedRecords from './0005-damaged-records.ts'
import * as nodeReports from './0006-node-reports.ts'
import * as bindingsBySealTime from './0007-bindings-by-seal-time.ts'
import * as failingViews from './0008-failing-views.ts'
import * as endpointName from './0009-endpoint-name.ts'
import * as accountStatus from './0010-account-status.ts'
import * as quotas from './0011-quotas.ts'
import * as encryptedSecrets from './0012-encrypted-secrets.ts'
import * as auditEvents from './0013-audit-events.ts'
import * as nodeCredentials from './0014-node-credentials.ts'
import * as certificates from './0015-certificates.ts'
import * as nodeReportVersions from './0016-node-report-versions.ts'
import * as rateWindows from './0017-rate-windows.ts'
import * as joinTokens from './0018-join-tokens.ts'
import * as dnsRecords from './0019-dns-records.ts'
import * as provisioningChecks from './0020-provisioning-checks.ts'
import * as leavingNodes from './0021-leaving-nodes.ts'
import * as revokedBeforeRemoval from './0022-revoked-before-removal.ts'
import * as people from './0023-people.ts'
import * as keyUse from './0024-key-use.ts'
import * as nodeSpace from './0025-node-space.ts'
import * as commitsBySegment from './0026-commits-by-segment.ts'
import * as series from './0027-series.ts'
import * as storesWithoutRoles from './0028-stores-without-roles.ts'
import * as seriesRowsOfAMinute from './0029-series-rows-of-a-minute.ts'
import * as compactions from './0030-compactions.ts'
import * as publicKeys from './0031-public-keys.ts'
import * as automaticCompactions from './0032-automatic-compactions.ts'
import * as keptHeaders from './0033-kept-headers.ts'
import * as removedSources from './0034-removed-sources.ts'
import * as endpointsThatCompact from './0035-endpoints-that-compact.ts'
import * as accessOfRevokedKeys from './0036-access-of-revoked-keys.ts'
import * as jobsInViewMetrics from './0037-jobs-in-view-metrics.ts'
import * as scrubFindings from './0038-scrub-findings.ts'
import * as listFormOfDrafts from './0039-list-form-of-drafts.ts'
import * as databaseGeneration from './0040-database-generation.ts'
import * as keptFields from './0041-kept-fields.ts'
import * as canaryRules from './0042-canary-rules.ts'
import * as accountSecrets from './0043-account-secrets.ts'
import * as rowsOfViews from './0044-rows-of-views.ts'
import * as duplicatesOfViews from './0045-duplicates-of-views.ts'
import * as shadows from './0046-shadows.ts'
import * as adoptedCredentials from './0047-adopted-credentials.ts'
import * as rowsInSeries from './0048-rows-in-series.ts'
import * as losses from './0049-losses.ts'
import * as recoveredCommits from './0050-recovered-commits.ts'
import * as leaderTerms from './0051-leader-terms.ts'
import * as revocationProgress from './0052-revocation-progress.ts'
import * as nodeNames from './0053-node-names.ts'
import * as unreportedCommits from './0054-unreported-commits.ts'
import * as releasedCredentials from './0055-released-credentials.ts'
import * as causesOfLosses from './0056-causes-of-losses.ts'
import * as formerCredentials from './0057-former-credentials.ts'
import * as segmentsOfLosses from './0058-segments-of-losses.ts'
import * as accountsOfMissingCommits from './0059-accounts-of-missing-commits.ts'
import * as searchedLosses from './0060-searched-losses.ts'
import * as quarantinedSeqs from './0061-quarantined-seqs.ts'
import * as heldSegments from './0062-held-segments.ts'
import * as formerPlaces from './0063-former-places.ts'
import * as copies from './0064-copies.ts'
import * as takeOvers from './0065-take-overs.ts'
import * as begunTakeOvers from './0066-begun-take-overs.ts'
import * as holdersOfTakeOvers from './0067-holders-of-take-overs.ts'
import * as countedLogs from './0068-counted-logs.ts'
import * as orderedHeartbeats from './0069-ordered-heartbeats.ts'

export type Migration = { readonly version: number; readonly name: string; readonly up: (db: Tx) => Promise<void> }

/** By version, without gaps. A released migration is never changed. */
const released: readonly Migration[] = [
  { version: 1, name: 'first-tables', up: firstTables.up },
  { version: 2, name: 'jobs', up: jobs.up },
  { version: 3, name: 'dlq-files-by-endpoint', up: dlqFilesByEndpoint.up },
  { version: 4, name: 'view-quality', up: viewQuality.up },
  { version: 5, name: 'damaged-records', up: damagedRecords.up },
  { version: 6, name: 'node-reports', up: nodeReports.up },
  { version: 7, name: 'bindings-by-seal-time', up: bindingsBySealTime.up },
  { version: 8, name: 'failing-views', up: failingViews.up },
  { version: 9, name: 'endpoint-name', up: endpointName.up },
  { version: 10, name: 'account-status', up: accountStatus.up },
  { version: 11, name: 'quotas', up: quotas.up },
  { version: 12, name: 'encrypted-secrets', up: encryptedSecrets.up },
  { version: 13, name: 'audit-events', up: auditEvents.up },
  { version: 14, name: 'node-credentials', up: nodeCredentials.up },
  { version: 15, name: 'certificates', up: certificates.up },
  { version: 16, name: 'node-report-versions', up: nodeReportVersions.up },
  { version: 17, name: 'rate-windows', up: rateWindows.up },
  { version: 18, name: 'join-tokens', up: joinTokens.up },
  { version: 19, name: 'dns-records', up: dnsRecords.up },
  { version: 20, name: 'provisioning-checks', up: provisioningChecks.up },
  { version: 21, name: 'leaving-nodes', up: leavingNodes.up },
  { version: 22, name: 'revoked-before-removal', up: revokedBeforeRemoval.up },
  { version: 23, name: 'people', up: people.up },
  { version: 24, name: 'key-use', up: keyUse.up },
  { version: 25, name: 'node-space', up: nodeSpace.up },
  { version: 26, name: 'commits-by-segment', up: commitsBySegment.up },
  { version: 27, name: 'series', up: series.up },
  { version: 28, name: 'stores-without-roles', up: storesWithoutRoles.up },
  { version: 29, name: 'series-rows-of-a-minute', up: seriesRowsOfAMinute.up },
  { version: 30, name: 'compactions', up: compactions.up },
  { version: 31, name: 'public keys', up: publicKeys.up },
  { version: 32, name: 'automatic-compactions', up: automaticCompactions.up },
  { version: 33, name: 'kept headers', up: keptHeaders.up },
  { version: 34, name: 'removed-sources', up: removedSources.up },
  { version: 35, name: 'endpoints-that-compact', up: endpointsThatCompact.up },
  { version: 36, name: 'access-of-revoked-keys', up: accessOfRevokedKeys.up },
  { version: 37, name: 'jobs-in-view-metrics', up: jobsInViewMetrics.up },
  { version: 38, name: 'scrub-findings', up: scrubFindings.up },
  { version: 39, name: 'list-form-of-drafts', up: listFormOfDrafts.up },
  { version: 40, name: 'database-generation', up: databaseGeneration.up },
  { version: 41, name: 'kept-fields', up: keptFields.up },
  { version: 42, name: 'canary-rules', up: canaryRules.up },
  { version: 43, name: 'account-secrets', up: accountSecrets.up },
  { version: 44, name: 'rows-of-views', up: rowsOfViews.up },
  { version: 45, name: 'duplicates-of-views', up: duplicatesOfViews.up },
  { version: 46, name: 'shadows', up: shadows.up },
  { version: 47, name: 'adopted-credentials', up: adoptedCredentials.up },
  { version: 48, name: 'rows-in-series', up: rowsInSeries.up },
  { version: 49, name: 'losses', up: losses.up },
  { version: 50, name: 'recovered-commits', up: recoveredCommits.up },
  { version: 51, name: 'leader-terms', up: leaderTerms.up },
  { version: 52, name: 'revocation-progress', up: revocationProgress.up },
  { version: 53, name: 'node-names', up: nodeNames.up },
  { version: 54, name: 'unreported-commits', up: unreportedCommits.up },
  { version: 55, name: 'released-credentials', up: releasedCredentials.up },
  { version: 56, name: 'causes-of-losses', up: causesOfLosses.up },
  { version: 57, name: 'former-credentials', up: formerCredentials.up },
  { version: 58, name: 'segments-of-losses', up: segmentsOfLosses.up },
  { version: 59, name: 'accounts-of-missing-commits', up: accountsOfMissingCommits.up },
  { version: 60, name: 'searched-losses', up: searchedLosses.up },
  { version: 61, name: 'quarantined-seqs', up: quarantinedSeqs.up },
  { version: 62, name: 'held-segments', up: heldSegments.up },
  { version: 63, name: 'former-places', up: formerPlaces.up },
  { version: 64, name: 'copies', up: copies.up },
  { version: 65, name: 'take-overs', up: takeOvers.up },
  { version: 66, name: 'begun-take-overs', up: begunTakeOvers.up },
  { version: 67, name: 'holders-of-take-overs', up: holdersOfTakeOvers.up },
  { version: 68, name: 'counted-logs', up: countedLogs.up },
  { version: 69, name: 'ordered-heartbeats', up: orderedHeartbeats.up },
]

/** An arbitrary number, the same in every release. */
const advisoryLock = 7_233_908_001

export class NewerDatabaseError extends UserError {
  override readonly name = 'NewerDatabaseError'
}

/** Applies missing migrations and returns their number. Throws NewerDatabaseError. */
export async function migrate(store: Store, migrations = released, now = Date.now()): Promise<number> {
  const newest = migrations.at(-1)?.version ?? 0
  return transact(store, async (db) => {
    // SQLite's transaction already holds the write lock.
    if (store.dialect === 'postgres') {
      // Migrating large tables, or waiting for another process to do so, may take longer than any other statement.
      await sql`set local statement_timeout = 0`.execute(db)
      await sql`set local idle_in_transaction_session_timeout = 0`.execute(db)
      await sql`select pg_advisory_xact_lock(${advisoryLock})`.execute(db)
    }
    const present = await currentVersion(db)
    if (present > newest) {
      throw new NewerDatabaseError(
        `the database has schema version ${present}, and this release of Inlet supports versions up to ${newest}: run the newer release, or restore the backup from before the upgrade`,
      )
    }
    const missing = migrations.filter(({ version }) => version > present)
    for (const { version, name, up } of missing) {
      await up(db)
      await db.insertInto('schema_migrations').values({ version, name, applied_at: now }).execute()
    }
    return missing.length
  })
}

/** Returns the schema version of the database, 0 before the first migration, and that of this release. Changes nothing. */
export async function readSchemaVersion({ db, dialect }: Store): Promise<{ readonly present: number; readonly newest: number }> {
  // Other schemas of Postgres may have such a table, or disappear meanwhile.
  const found =
    dialect === 'postgres'
      ? await sql`select 1 where to_regclass('schema_migrations') is not null`.execute(db)
      : await sql`select 1 from sqlite_master where type = 'table' and name = 'schema_migrations'`.execute(db)
  return { present: found.rows.length > 0 ? await newestVersion(db) : 0, newest: released.at(-1)?.version ?? 0 }
}

async function currentVersion(db: Tx): Promise<number> {
  await db.schema
    .createTable('schema_migrations')
    .ifNotExists()
    .addColumn('version', 'integer', (column) => column.primaryKey())
    .addColumn('name', 'text', (column) => column.notNull())
    .addColumn('applied_at', 'bigint', (column) => column.notNull())
    .execute()
  return newestVersion(db)
}

async function newestVersion(db: Db): Promise<number> {
  const { version } = await db
    .selectFrom('schema_migrations')
    .select(({ fn }) => fn.max('version').as('version'))
    .executeTakeFirstOrThrow()
  return version ?? 0
}
