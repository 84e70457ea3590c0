/** Control as a process: opens the database, secrets, object stores, certificates and addresses, and runs the plane on them. */
import { randomBytes } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { openKeyring } from '#auth/secret-key.ts'
import { readOrCreateNodeToken, readOrCreateOperatorToken } from '#auth/token-files.ts'
import { baseUrlOf, baseUrlProblem, certificateSourcesOf, httpUrl, signInProviderOf } from '#config/addresses.ts'
import { type Config, options } from '#config/config.ts'
import { assertCanListen } from '#lib/assert-can-listen.ts'
import type { Clock } from '#lib/clock.ts'
import { lockExclusively } from '#lib/exclusive.ts'
import { systemFiles } from '#lib/files.ts'
import { createMetrics } from '#lib/metrics.ts'
import { reachableUrl } from '#lib/reachable-url.ts'
import { openSandbox } from '#lib/sandbox.ts'
import { startAll, stopAll } from '#lib/service.ts'
import { system } from '#lib/system.ts'
import type { Logger } from '#lib/telemetry.ts'
import { readVersion } from '#lib/version.ts'
import { storeTraitsOf } from '#model/object-store.ts'
import { openCertificates } from '#naming/certificates/open.ts'
import { openDnsProvider } from '#naming/dns/open.ts'
import { type OpenedObjectStores, openObjectStores } from '#objects/open.ts'
import { SignedUrls } from '#objects/signed-urls.ts'
import { PreviewWorkers } from '#preview/preview-workers.ts'
import { QueryWorkers } from '#query/query-workers.ts'
import { DatabaseClock } from '#store/cluster/database-clock.ts'
import { readDatabaseTime } from '#store/cluster/database-time.ts'
import { timelineFile } from '#store/cluster/timeline-file.ts'
import { listBucketAccounts } from '#store/endpoints/destinations.ts'
import { hasDamagedLog } from '#store/engines/sqlite-log.ts'
import { getOrInsertSecret } from '#store/installation-secrets.ts'
import { prepareDatabase } from '#store/migrations/prepare.ts'
import { newestHeartbeat } from '#store/nodes/nodes.ts'
import { findKeyInUse, sealSecrets } from '#store/sealed-secrets.ts'
import { openStore, type Store } from '#store/store.ts'
import { applyRestore, isNodeInUse, noteDamagedLog } from './data-directory.ts'
import { warnAboutLocalBuckets } from './local-buckets.ts'
import { type ControlBase, type ControlPlane, type ControlPorts, composeBase, composeControl } from './plane.ts'
import { type Bootstrapped, bootstrap } from './resources/bootstrap.ts'
import { comparedOptions, reportSettingDifferences } from './setting-differences.ts'
import type { SearchEndpoint } from './upkeep/losses-in-buckets.ts'
import type { RebuildRegion } from './upkeep/lost-commits.ts'

export type AppHooks = {
  readonly logger: Logger
  readonly clock: Clock
  /** Whether a database on Postgres says what time it is. Tests set the time themselves. */
  readonly usesDatabaseClock?: boolean
  /** Called once, at the startup that creates the first account. */
  readonly onBootstrap: (made: Bootstrapped) => void | Promise<void>
  /** Reads the buckets for commits that the database lost. Without, an operator has to (inlet commits rebuild). */
  readonly rebuildRegion?: RebuildRegion
  /** Looks in the buckets for what nodes that lost their place had not reported. */
  readonly searchEndpoint?: SearchEndpoint
  /** Whether somebody at a terminal starts this process. */
  readonly isAtTerminal?: boolean
  /** Called with a one-time link into the console as long as nobody has signed in. */
  readonly onFirstLink?: (url: string) => void | Promise<void>
}

/** The listen addresses, with the actual ports if the system chose them. */
export type App = { readonly url: string; readonly nodeApiUrl: string; stop(signal: AbortSignal): Promise<void> }

export async function startControl(config: Config, hooks: AppHooks): Promise<App> {
  const database = config.databaseUrl || config.paths.database
  const store = await openStore(database, {
    onConnectionLost: (error) => hooks.logger.warn({ err: error }, 'database connection lost'),
    timelines: timelineFile(systemFiles, config.paths.databaseTimelines, hooks.logger),
  })
  using resources = new DisposableStack()
  if (store.dialect === 'sqlite') resources.use(lockExclusively(`${database}.lock`, lockedHint))
  try {
    // Before the database is touched: it may belong to another installation.
    await assertCanListen(config.controlListen, 'INLET_CONTROL_LISTEN')
    await assertCanListen(config.nodeApiListen, 'INLET_NODE_API_LISTEN')
    const isLogDamaged = store.dialect === 'sqlite' && (await hasDamagedLog(systemFiles, database))
    const applied = await prepareDatabase(store, database)
    if (applied > 0) hooks.logger.info({ applied }, 'database migrated')
    if (isLogDamaged) await noteDamagedLog(store, database, hooks)
    await applyRestore(store, config.paths, hooks)
    const app = await serveStore(store, config, hooks)
    const held = resources.move()
    return {
      ...app,
      async stop(signal) {
        await app.stop(signal)
        held.dispose()
      },
    }
  } catch (error) {
    await store.close()
    throw error
  }
}

const lockedHint =
  'is another control process running on this SQLite database? Stop it, or use Postgres, which several processes can share'

async function serveStore(store: Store, config: Config, hooks: AppHooks): Promise<App> {
  const { logger } = hooks
  const databaseClock = await openDatabaseClock(store, hooks)
  const clock = databaseClock ?? hooks.clock
  const baseUrl = baseUrlOf(config)
  const problem = baseUrlProblem(config)
  if (problem !== undefined) logger.warn(`${problem}: set INLET_BASE_URL to an https:// address`)
  const secrets = await openSecrets(store, config, { baseUrl, logger })
  const signedUrls = new SignedUrls({ baseUrl, secret: secrets.downloads, clock })
  const objects = await openObjects(store, config, { clock, signedUrls }, logger)
  const dnsProvider = await openDnsProvider(config, clock)
  const sandbox = await openSandbox(logger, config.workerUser)
  const registry = createMetrics('control', await readVersion(), clock)
  const ports: ControlPorts = {
    ...{ store, clock, logger, baseUrl, secrets, signedUrls, objects, dnsProvider, registry },
    hosts: hostsOf(config),
    storeTraits: storeTraitsOf(config),
    signInProvider: signInProviderOf(config),
    previewWorkers: new PreviewWorkers({ clock, logger, sandbox }),
    queryWorkers: new QueryWorkers({ clock, logger, sandbox, directory: config.paths.queries }),
    rebuildRegion: hooks.rebuildRegion,
    searchEndpoint: hooks.searchEndpoint,
  }
  const base = composeBase(config, ports, await newestHeartbeat(store.db))
  const certificates = await openCertificates(
    { ...config, baseUrl },
    {
      ...{ ...base, store, clock, logger, keyring: secrets.keyring, dns: dnsProvider },
      sources: certificateSourcesOf(config),
    },
  )
  const plane = await composeControl(config, ports, base, certificates, {
    developmentCa: config.certificates === 'development' ? await readFile(config.paths.developmentCa) : undefined,
  })
  const services = [...(databaseClock === undefined ? [] : [databaseClock]), ...plane.services]
  await startAll(services)
  const { url, nodeApiUrl } = await listen(config, hooks, ports, base, plane).catch(async (error: unknown) => {
    await plane.nodeServer.close()
    await stopAll(services, AbortSignal.abort())
    throw error
  })
  return {
    url,
    nodeApiUrl,
    async stop(signal) {
      await plane.closeServers(signal, () => stopAll(services, signal))
      objects.close()
      dnsProvider?.close()
      await store.close()
    },
  }
}

async function openDatabaseClock(store: Store, { clock, logger, usesDatabaseClock }: AppHooks) {
  if (store.dialect !== 'postgres' || usesDatabaseClock !== true) return undefined
  return DatabaseClock.open({ readTime: () => readDatabaseTime(store.db), clock, logger })
}

function hostsOf({ ingestListen, baseDomain }: Config) {
  const { host, port } = ingestListen
  return { baseDomain, ingestAddressDefault: httpUrl({ host, port }).slice('http://'.length) }
}

async function openSecrets(
  store: Store,
  config: Config,
  { baseUrl, logger }: { readonly baseUrl: string; readonly logger: Logger },
): Promise<ControlPorts['secrets']> {
  const { secretKey: configured, paths } = config
  const keyring = await openKeyring({ configured, path: paths.secretKey, inUse: await findKeyInUse(store.db) })
  const encrypted = await sealSecrets(store, keyring)
  if (encrypted > 0) logger.info({ encrypted, key_id: keyring.keyId }, 'secrets encrypted')
  const newSecret = () => randomBytes(32).toString('base64url')
  const secrets = {
    keyring,
    downloads: await getOrInsertSecret(store.db, keyring, 'downloads', newSecret),
    sessions: await getOrInsertSecret(store.db, keyring, 'sessions', newSecret),
    join: config.nodeToken ?? (await readOrCreateNodeToken(system, paths.nodeToken)),
    operatorToken: config.operatorToken ?? (await readOrCreateOperatorToken(system, paths.operatorToken)),
  }
  if (store.dialect === 'postgres') {
    const settings = {
      ...Object.fromEntries(comparedOptions.map((name) => [options[name].env, config[name]])),
      INLET_BASE_URL: baseUrl,
      INLET_OPERATOR_TOKEN: secrets.operatorToken,
      INLET_NODE_TOKEN: secrets.join,
    }
    await reportSettingDifferences({ store, keyring, logger, settings })
  }
  return secrets
}

async function openObjects(
  store: Store,
  config: Config,
  context: { readonly clock: Clock; readonly signedUrls: SignedUrls },
  logger: Logger,
): Promise<OpenedObjectStores> {
  const opened = await openObjectStores(config, { ...system, ...context })
  warnAboutLocalBuckets(config, store.dialect === 'postgres', logger)
  await opened.local?.adopt(async (bucket) => {
    const [owner, ...others] = await listBucketAccounts(store.db, bucket)
    if (others.length > 0) logger.warn({ bucket, owner, others }, 'bucket no longer shared by accounts')
    return owner
  })
  return opened
}

async function listen(
  config: Config,
  { onBootstrap, onFirstLink, isAtTerminal, logger }: AppHooks,
  { store, objects, storeTraits, hosts, clock }: ControlPorts,
  { applyChange, people }: ControlBase,
  { server, nodeServer }: ControlPlane,
): Promise<Pick<App, 'url' | 'nodeApiUrl'>> {
  const { region, bootstrapApiKey: apiKey, s3Buckets: buckets, controlListen, nodeApiListen, baseUrl } = config
  const made = await bootstrap({
    ...{ store, applyChange, objectStores: objects.stores, storeTraits, buckets, clock, logger, region, hosts, apiKey },
    isNodeInUse: await isNodeInUse(config.paths),
    isAtTerminal: isAtTerminal === true,
  })
  if (made !== undefined) await onBootstrap(made)
  const link = await people.firstLink()
  if (link !== undefined) await onFirstLink?.(link)
  const nodeApiUrl = await nodeServer.listen({ ...nodeApiListen })
  const url = await server.listen({ ...controlListen })
  const addresses = {
    url: reachableUrl(url, controlListen, baseUrl),
    node_api: reachableUrl(nodeApiUrl, nodeApiListen, baseUrl),
  }
  logger.info({ ...addresses, database: store.dialect }, 'control listening')
  return { url, nodeApiUrl }
}
