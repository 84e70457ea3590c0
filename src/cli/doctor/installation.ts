/** Checks of an installation, in its database and on the disk of its node. Nothing is changed: an older schema is left as it is. */
import { stat } from 'node:fs/promises'
import { openKeyring } from '#auth/secret-key.ts'
import type { Config } from '#config/config.ts'
import { type Clock, isoTimestamp } from '#lib/clock.ts'
import { namedId } from '#lib/named-id.ts'
import { createLogger } from '#lib/telemetry.ts'
import { nodeLimits, pageLimits } from '#model/limits.ts'
import { listAccounts } from '#store/accounts/accounts.ts'
import { listProblems } from '#store/cluster/server-problems.ts'
import { listMissingCommits } from '#store/commits/missing-commits.ts'
import { listDestinations } from '#store/endpoints/destinations.ts'
import { readSchemaVersion } from '#store/migrations/migrate.ts'
import { listCertificates } from '#store/naming/certificates.ts'
import { listNodeInventories } from '#store/nodes/node-inventory.ts'
import { findKeyInUse, openSecrets } from '#store/sealed-secrets.ts'
import { openStore, type Store } from '#store/store.ts'
import { knownTimelines } from '../operator/store.ts'
import { readNodeSegments } from '../segments/node-segments.ts'
import { attempt, type Finding, fail, ok, warn } from './finding.ts'
import { describeExpiry } from './machine.ts'

/** Lists that are longer are checked in part. */
const page = { limit: pageLimits.max, offset: 0 }

export async function checkInstallation(config: Config, clock: Clock): Promise<readonly Finding[]> {
  const { databaseUrl, paths } = config
  const exists = async (path: string) => (await stat(path).catch(() => undefined)) !== undefined
  const isThere = databaseUrl !== '' || (await exists(paths.database))
  // A directory of control keeps its key there. A machine with nodes alone has neither.
  const isLost = !isThere && (await exists(paths.secretKey))
  const restore = 'restore it: docs/how-to/lost-database.md'
  const next = /^postgres/.test(databaseUrl) ? 'start it, or correct INLET_DATABASE_URL' : restore
  return [
    ...(isThere ? await attempt('database', next, () => checkDatabase(config, clock)) : []),
    ...(isLost
      ? [
          fail(
            'database',
            `there is none at ${paths.database}, but control has run there`,
            `${restore}; if it is elsewhere, set INLET_DATABASE_URL`,
          ),
        ]
      : []),
    ...(await attempt('segments', 'see: inlet segments', () => checkSegments(config, clock))),
  ]
}

async function checkDatabase(config: Config, clock: Clock): Promise<readonly Finding[]> {
  const timelines = knownTimelines(config.paths.databaseTimelines)
  const store = await openStore(config.databaseUrl || config.paths.database, { mustExist: true, timelines })
  try {
    const { present, newest } = await readSchemaVersion(store)
    const versions = `it has schema version ${present}, and this release has ${newest}`
    if (present > newest) return [fail('database', versions, 'run the newer release')]
    if (present < newest) return [warn('database', versions, 'back up the database, and start Inlet: the start migrates it')]
    return [
      ok('database', `${store.dialect}, schema version ${present}`),
      ...(await attempt('secret key', 'restore it: "a lost secret key" in docs/operations.md', () =>
        checkSecrets(store, config),
      )),
      ...(await checkServers(store)),
      ...(await checkCommits(store)),
      ...(await checkNodes(store, clock.now())),
      ...(await checkDestinations(store)),
      ...(await checkCertificates(store, clock.now())),
    ]
  } finally {
    await store.close()
  }
}

async function checkSecrets({ db }: Store, { secretKey, paths }: Config): Promise<readonly Finding[]> {
  const inUse = await findKeyInUse(db)
  if (inUse === undefined) return []
  await openSecrets(db, await openKeyring({ configured: secretKey, path: paths.secretKey, inUse }))
  return [ok('secret key', 'it opens the secrets in the database')]
}

async function checkServers({ servers }: Store): Promise<readonly Finding[]> {
  if (servers === undefined || servers.count < 2) return []
  const found = listProblems(await servers.survey())
  return found.map(({ level, message, remedy }) => (level === 'error' ? fail : warn)('database servers', message, remedy))
}

async function checkCommits({ db }: Store): Promise<readonly Finding[]> {
  return (await listMissingCommits(db)).map(({ region, since, automatic }) => {
    const where = region === '*' ? '' : ` in region ${region}`
    return fail(
      'commits',
      `those since ${isoTimestamp(since)} may be missing${where}`,
      automatic === 1
        ? 'wait until control has recorded them; if it takes long: inlet commits rebuild'
        : 'record them again: inlet commits rebuild',
    )
  })
}

async function checkNodes(store: Store, now: number): Promise<readonly Finding[]> {
  const { items } = await listNodeInventories(store.db, page)
  return items.flatMap((node) =>
    (['ingest', 'delivery'] as const).map((name) => {
      const state = node[name]
      const who = `${name} of node ${namedId(node.id, node.name)}`
      const seconds = state === null ? null : Math.max(0, Math.round((now - Date.parse(state.last_seen_at)) / 1000))
      if (state === null || seconds === null) return warn('node', `${who} was never seen`, 'start it (inlet start or inlet node)')
      if (seconds > nodeLimits.healthySeconds)
        return warn('node', `${who} is silent for ${seconds} s`, 'start it, or remove the node (inlet nodes remove)')
      if (state.kept_position !== null) {
        const keeps = `${who} refuses the configuration of this database, and keeps that of epoch ${state.kept_position.epoch}`
        return fail('node', keeps, 'see: inlet database show')
      }
      if (state.healthy)
        return state.reasons.length === 0
          ? ok('node', `${who} reported ${seconds} s ago`)
          : warn('node', `${who}: ${state.reasons.join('; ')}`, 'see the log of the node')
      return fail('node', `${who} is not healthy: ${state.reasons.join('; ')}`, 'see the log of the node')
    }),
  )
}

async function checkDestinations(store: Store): Promise<readonly Finding[]> {
  const findings: Finding[] = []
  for (const account of (await listAccounts(store.db, page)).items)
    for (const { id, name, status, last_error } of (await listDestinations(store.db, account.id, page)).items)
      findings.push(
        last_error !== null
          ? fail('destination', `${name}: ${last_error}`, `correct it, then: inlet destinations validate ${id}`)
          : status === 'valid'
            ? ok('destination', `${name} can be written to`)
            : warn('destination', `${name} is ${status}`, `inlet destinations validate ${id}`),
      )
  return findings
}

async function checkCertificates(store: Store, now: number): Promise<readonly Finding[]> {
  return (await listCertificates(store.db)).map(({ name, not_after, last_error }) => {
    const next = `see: inlet certificates list; order it now: inlet certificates renew ${name}`
    if (last_error !== null) return warn('certificate', `the last order of ${name} failed: ${last_error}`, next)
    return not_after === null
      ? warn('certificate', `${name} is not issued yet`, next)
      : describeExpiry(name, Date.parse(not_after), now, next)
  })
}

async function checkSegments(config: Config, clock: Clock): Promise<readonly Finding[]> {
  const { segments, problems } = await readNodeSegments(config, { clock, logger: createLogger('doctor', 'silent') })
  const count = (state: string) => segments.filter((segment) => segment.state === state).length
  const [parked, quarantined] = [count('parked'), count('quarantined')]
  const counts = `${segments.length} on this node: ${count('open')} open, ${count('sealed')} sealed, ${parked} parked, ${quarantined} quarantined`
  const next = 'inlet segments says why; docs/operations.md says what to do'
  if (problems.length > 0) return [fail('segments', `${problems.length} could not be read: ${problems[0]}`, next)]
  return [parked + quarantined > 0 ? warn('segments', counts, next) : ok('segments', counts)]
}
