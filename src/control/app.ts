/** The composition of the control process. */
import { randomBytes } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { KeyUse } from '#auth/key-use.ts'
import { createSignIn } from '#auth/lazy-sign-in.ts'
import { readOrCreateNodeToken } from '#auth/node-token.ts'
import { readOrCreateOperatorToken } from '#auth/operator-token.ts'
import { openKeyring } from '#auth/secret-key.ts'
import { secretsEqual } from '#auth/secrets.ts'
import { type Config, options } from '#config.ts'
import { baseUrlOf, baseUrlProblem, certificateSourcesOf, httpUrl, signInProviderOf } from '#config-addresses.ts'
import { assertCanListen } from '#lib/assert-can-listen.ts'
import type { Clock } from '#lib/clock.ts'
import { lockExclusively } from '#lib/exclusive.ts'
import { systemFiles } from '#lib/files.ts'
import { createMetrics, registerTlsMetrics, registerWorkerMetrics } from '#lib/metrics.ts'
import { reachableUrl } from '#lib/reachable-url.ts'
import { rootOf } from '#lib/root-certificate.ts'
import { openSandbox } from '#lib/sandbox.ts'
import { startAll, stopAll } from '#lib/service.ts'
import type { Logger } from '#lib/telemetry.ts'
import { ThrottledWarnings } from '#lib/throttled-warnings.ts'
import { readVersion } from '#lib/version.ts'
import { hasAllowedBuckets, storeTraitsOf } from '#model/object-store.ts'
import { openObjectStores } from '#objects/open.ts'
import { SignedUrls } from '#objects/signed-urls.ts'
import { PreviewWorkers } from '#preview/preview-workers.ts'
import { QueryWorkers } from '#query/query-workers.ts'
import { listCertificates } from '#store/certificates.ts'
import { readDatabaseTime } from '#store/database-time.ts'
import { listBucketAccounts } from '#store/destinations.ts'
import { currentEpoch } from '#store/epoch.ts'
import { recordKeyUse } from '#store/key-use.ts'
import { newestHeartbeat } from '#store/nodes.ts'
import { findRole } from '#store/people.ts'
import { prepareDatabase } from '#store/prepare.ts'
import { findKeyInUse, sealSecrets } from '#store/sealed-secrets.ts'
import { getOrInsertSecret } from '#store/secrets.ts'
import { hasDamagedLog } from '#store/sqlite-log.ts'
import { type Db, openStore, type Store, transact } from '#store/store.ts'
import { registerCertificateMetrics } from './certificate-metrics.ts'
import { followRestored, isNodeInUse, noteDamagedLog } from './data-directory.ts'
import { DatabaseClock } from './database-clock.ts'
import { DeliveredMetrics } from './delivered-metrics.ts'
import { DeliveryProcesses } from './delivery-processes.ts'
import { registerRequestSeconds } from './http-server.ts'
import { registerLagMetrics } from './lag-metrics.ts'
import { createLeadership, registerLeadershipMetric } from './leadership.ts'
import { controlLimits } from './limits.ts'
import { warnAboutLocalBuckets } from './local-buckets.ts'
import { buildNodeServer } from './node-api/server.ts'
import { registerNodeMetrics } from './node-metrics.ts'
import { openCertificates } from './provisioning/certificates/open.ts'
import { checkLimits } from './provisioning/checks/limits.ts'
import { createChecks } from './provisioning/checks/start.ts'
import { openDnsProvider } from './provisioning/dns/open.ts'
import { publishedNodes } from './provisioning/dns/published-nodes.ts'
import { createDnsPublishing, DnsPublisher } from './provisioning/dns/publisher.ts'
import { ControlOutages } from './provisioning/outages.ts'
import { Provisioner } from './provisioning/provisioner.ts'
import { buildServer } from './server.ts'
import { Accounts } from './services/accounts.ts'
import { AuditTrail } from './services/audit-trail.ts'
import { createAutomaticCompactions } from './services/automatic-compactions.ts'
import { bindingService } from './services/bindings.ts'
import { type Bootstrapped, bootstrap } from './services/bootstrap.ts'
import { BucketFiles } from './services/bucket-files.ts'
import { announceChanges } from './services/changes.ts'
import { createCheckpoints } from './services/checkpoints.ts'
import { commitService } from './services/commits.ts'
import { compactionService } from './services/compactions.ts'
import { deliveredRecordService } from './services/delivered-records.ts'
import { destinationService } from './services/destinations.ts'
import { dlqFileService } from './services/dlq-files.ts'
import { DownloadLinks } from './services/download-links.ts'
import { createDrainRemoval } from './services/drains.ts'
import { endpointService } from './services/endpoints.ts'
import { EpochFeed, registerEpochMetric } from './services/epoch-feed.ts'
import { createHousekeeping } from './services/housekeeping.ts'
import { inventoryService } from './services/inventory.ts'
import { issuedCertificates } from './services/issued-certificates.ts'
import { JobLeases } from './services/job-leases.ts'
import { jobService } from './services/jobs.ts'
import { joinTokenService } from './services/join-tokens.ts'
import { keyService } from './services/keys.ts'
import { nodeAccess } from './services/node-access.ts'
import { nodeService } from './services/nodes.ts'
import { peopleService } from './services/people.ts'
import { Queries } from './services/queries.ts'
import { quotaService } from './services/quotas.ts'
import { scrubService } from './services/scrubs.ts'
import { seriesService } from './services/series.ts'
import { createSettlements } from './services/settlements.ts'
import { createWindowRemoval, rateLimitStore } from './services/shared-rate-limits.ts'
import { Snapshots } from './services/snapshots.ts'
import { Suggestions } from './services/suggestions.ts'
import { testEventService } from './services/test-events.ts'
import { Tokens } from './services/tokens.ts'
import { viewService } from './services/views.ts'
import { comparedOptions, reportSettingDifferences } from './setting-differences.ts'
import { registerUsageMetrics } from './usage-metrics.ts'

export type AppHooks = {
  readonly logger: Logger
  readonly clock: Clock
  /** Whether a database on Postgres says what time it is. Tests set the time themselves. */
  readonly usesDatabaseClock?: boolean
  /** Called once, at the startup that creates the first account. */
  readonly onBootstrap: (made: Bootstrapped) => void | Promise<void>
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
    await followRestored(store, config.paths, hooks)
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

const dayMs = 86_400_000

const lockedHint =
  'is another control process running on this SQLite database? Stop it, or use Postgres, which several processes can share'

async function serveStore(store: Store, config: Config, hooks: AppHooks): Promise<App> {
  const { logger, onBootstrap, onFirstLink } = hooks
  const databaseClock =
    store.dialect === 'postgres' && hooks.usesDatabaseClock === true
      ? await DatabaseClock.open({ readTime: () => readDatabaseTime(store.db), clock: hooks.clock, logger })
      : undefined
  const clock = databaseClock ?? hooks.clock
  const baseUrl = baseUrlOf(config)
  const problem = baseUrlProblem(config)
  if (problem !== undefined) logger.warn(`${problem}: set INLET_BASE_URL to an https:// address`)
  const { host, port } = config.ingestListen
  const hosts = { baseDomain: config.baseDomain, ingestAddressDefault: httpUrl({ host, port }).slice('http://'.length) }
  const keyring = await openKeyring({
    configured: config.secretKey,
    path: config.paths.secretKey,
    inUse: await findKeyInUse(store.db),
  })
  const encrypted = await sealSecrets(store, keyring)
  if (encrypted > 0) logger.info({ encrypted, key_id: keyring.keyId }, 'secrets encrypted')
  const downloadSecret = await getOrInsertSecret(store.db, keyring, 'downloads', () => randomBytes(32).toString('base64url'))
  const signedUrls = new SignedUrls({ baseUrl, secret: downloadSecret, clock })
  const opened = await openObjectStores(config, { clock, signedUrls })
  const objectStores = opened.stores
  const storeTraits = storeTraitsOf(config)
  warnAboutLocalBuckets(config, store.dialect === 'postgres', logger)
  await opened.local?.adopt(async (bucket) => {
    const [owner, ...others] = await listBucketAccounts(store.db, bucket)
    if (others.length > 0) logger.warn({ bucket, owner, others }, 'bucket no longer shared by accounts')
    return owner
  })
  const sessionSecret = await getOrInsertSecret(store.db, keyring, 'sessions', () => randomBytes(32).toString('base64url'))
  const publicKeys = config.publicKeys === 'true'
  const people = peopleService({ store, baseUrl, providerRole: config.oidcRole, publicKeys, clock, logger })
  const provider = signInProviderOf(config)
  const signIn = createSignIn({
    ...{ database: store.db, baseUrl, secret: sessionSecret, provider, clock },
    providerTimeoutMs: controlLimits.signInProviderTimeoutMs,
    ...{ useLink: people.useLink, refuseToJoin: people.refuseToJoin, join: people.join },
    warnings: new ThrottledWarnings({ clock, logger, intervalMs: controlLimits.warnIntervalMs }),
  })
  const joinSecret = config.nodeToken ?? (await readOrCreateNodeToken(config.paths.nodeToken))
  const operatorToken = config.operatorToken ?? (await readOrCreateOperatorToken(config.paths.operatorToken))

  if (store.dialect === 'postgres') {
    const settings = {
      ...Object.fromEntries(comparedOptions.map((name) => [options[name].env, config[name]])),
      INLET_BASE_URL: baseUrl,
      INLET_OPERATOR_TOKEN: operatorToken,
      INLET_NODE_TOKEN: joinSecret,
    }
    await reportSettingDifferences({ store, keyring, logger, settings })
  }

  const outages = new ControlOutages(clock, await newestHeartbeat(store.db))
  const readEpoch = async () => {
    const epoch = await currentEpoch(store.db)
    outages.noteContact()
    return epoch
  }
  const feed = new EpochFeed({ readEpoch, clock, logger })
  const applyChange = announceChanges(store, feed)
  const leadership = createLeadership(store, { clock, logger })
  const reportKeyUse = (ids: readonly string[]) => transact(store, (db) => recordKeyUse(db, ids, clock.now()))
  const keyUse = new KeyUse({ report: reportKeyUse, clock, logger })
  const tokens = new Tokens({ store, keyring, applyChange, feed, keyUse, clock, logger, issuer: baseUrl })
  const auditTrail = new AuditTrail({ store, keptMs: config.auditKeptDays * dayMs, clock, logger })
  const accounts = new Accounts({
    ...{ store, applyChange, feed, clock, logger },
    hasAllowedBuckets: hasAllowedBuckets(storeTraits),
  })
  const readPublicKeys = (db: Db) => tokens.publicKeys(db)
  const dnsProvider = await openDnsProvider(config, clock)
  const dnsKeeper = config.dnsProvider === null ? 'nobody' : dnsProvider === undefined ? 'operator' : 'inlet'
  const provisioner = new Provisioner({ store, clock, hosts, baseUrl, outages, dnsKeeper })
  const sandbox = await openSandbox(logger, config.workerUser)
  const previewWorkers = new PreviewWorkers({ clock, logger, sandbox })
  const queryWorkers = new QueryWorkers({ clock, logger, sandbox, directory: config.paths.queries })
  const metrics = createMetrics('control', await readVersion(), clock)
  if (config.metricsToken !== null) registerUsageMetrics(metrics, { store, clock })
  registerLagMetrics(metrics, { store, clock, byEndpoint: config.metricsToken !== null })
  registerNodeMetrics(metrics, { store, clock })
  registerWorkerMetrics(metrics, { preview: () => previewWorkers.pids, query: () => queryWorkers.pids })
  registerLeadershipMetric(metrics, leadership)
  registerEpochMetric(metrics, feed)
  const isShared = store.dialect === 'postgres'
  const dns = dnsProvider && { store, outages, clock, logger, provider: dnsProvider, ttlSeconds: config.dnsTtlSeconds }
  const dnsPublisher =
    dns && config.baseDomain !== null ? new DnsPublisher({ ...dns, baseDomain: config.baseDomain.toLowerCase() }) : undefined
  dnsPublisher?.registerMetrics(metrics)
  let stopping = false

  const serverOptions = {
    baseUrl,
    logger,
    clock,
    requestSeconds: registerRequestSeconds(metrics),
    requestTimeoutMs: config.requestTimeoutSeconds * 1000,
  }
  const downloadLinks = new DownloadLinks({ store, objectStores, logger })
  const delivered = new DeliveredMetrics(metrics, { byView: config.metricsToken !== null, clock })
  const commits = commitService({ store, clock, downloadLinks, delivered })
  const bucketFiles = new BucketFiles({ store, objectStores, logger })
  const access = nodeAccess({ store, joinSecret, clock, logger })
  const certificates = await openCertificates(
    { ...config, baseUrl },
    { sources: certificateSourcesOf(config), store, keyring, dns: dnsProvider, leadership, feed, applyChange, clock, logger },
  )
  const { certificateName } = certificates
  if (certificateName !== undefined)
    registerCertificateMetrics(metrics, { readCertificates: () => listCertificates(store.db), clock })
  registerTlsMetrics(metrics, { control: certificates.control, node_api: certificates.nodeApi }, clock)
  const rootCertificate = () => {
    const { cert } = certificates.nodeApi?.options ?? {}
    return cert && rootOf(cert)
  }
  const nodeServer = await buildNodeServer({
    ...serverOptions,
    certificate: certificates.nodeApi,
    access,
    rootCertificate,
    services: {
      nodes: nodeService({
        ...{ store, feed, deliveryProcesses: new DeliveryProcesses(metrics, clock), clock, logger },
        published: dns && publishedNodes(dns),
      }),
      snapshots: new Snapshots({
        ...{ store, feed, readPublicKeys, clock, certificateName },
        issuer: baseUrl,
        baseDomain: config.baseDomain,
      }),
      certificates: issuedCertificates({ store, keyring, certificateName }),
      commits,
      jobLeases: new JobLeases({ store, clock, logger, delivered }),
      scrubs: scrubService({ store, keptMs: config.commitsKeptDays * dayMs, clock }),
    },
  })
  const server = await buildServer({
    ...serverOptions,
    certificate: certificates.control,
    metrics,
    metricsToken: config.metricsToken,
    credentials: {
      verifyToken: (token) => tokens.verify(token),
      isOperatorToken: (token) => secretsEqual(token, operatorToken),
      origin: new URL(baseUrl).origin,
      findSession: (cookie) => signIn.find(cookie),
      findRole: (person_id, account_id) => findRole(store.db, person_id, account_id),
      isSuspended: (account_id) => accounts.isSuspended(account_id),
    },
    notReadyReasons: async () =>
      stopping
        ? ['shutting down']
        : currentEpoch(store.db).then(
            () => [],
            () => ['the database cannot be read'],
          ),
    downloads: { verify: (url) => signedUrls.verify(url), read: async (name) => opened.local?.read(name) },
    requestsPerMinute: config.apiRequestsPerMinute,
    exchangesPerMinute: config.exchangeRequestsPerMinute,
    requestsPerMinutePerAddress: config.addressRequestsPerMinute,
    rateLimitStore: isShared ? rateLimitStore(store, clock) : undefined,
    trustedProxies: config.trustProxy?.split(',').map((part) => part.trim()) ?? [],
    services: {
      auditTrail,
      accounts,
      tokens,
      keys: keyService({ store, applyChange, publicKeys, clock, logger }),
      destinations: destinationService({
        store,
        applyChange,
        objectStores,
        storeTraits,
        clock,
        logger,
        awsPrincipalArn: config.awsPrincipalArn,
      }),
      endpoints: endpointService({ store, applyChange, provisioner, clock, logger }),
      testEvents: testEventService({
        ...{ store, provisioner, tokens, clock },
        ca: config.certificates === 'development' ? await readFile(config.paths.developmentCa) : undefined,
      }),
      views: viewService({ store, applyChange, definitions: previewWorkers, clock }),
      dlqFiles: dlqFileService({ store, downloadLinks }),
      previews: previewWorkers,
      deliveredRecords: deliveredRecordService({ store, bucketFiles, reader: previewWorkers }),
      suggestions: new Suggestions({ store, bucketFiles, runner: previewWorkers }),
      bindings: bindingService({ store, applyChange, clock }),
      commits,
      jobs: jobService({ store, clock }),
      compactions: compactionService({ store, clock }),
      inventory: inventoryService({ store, clock }),
      nodeAccess: access,
      joinTokens: joinTokenService({ store, rootCertificate, clock, logger }),
      queries: new Queries({ store, objectStores, runner: queryWorkers, logger }),
      quotas: quotaService({ store, clock }),
      people,
      series: seriesService({ store, clock }),
    },
    signIn,
    signInProvider: provider,
  })

  const { baseDomain, dnsServer } = config
  const defaultNames = config.dnsProvider === 'route53' ? checkLimits.billedNamesMax : checkLimits.namesMax
  const dnsNamesPerSecond = config.dnsNamesPerSecond ?? defaultNames
  // The feed stops first, so that long polls end before the listener waits for its requests.
  const services = [
    ...(databaseClock === undefined ? [] : [databaseClock]),
    ...certificates.services,
    tokens,
    keyUse,
    leadership,
    ...createCheckpoints(store, { clock, logger }),
    createHousekeeping({ store, auditTrail, commitsKeptMs: config.commitsKeptDays * dayMs, leadership, clock, logger }),
    createDrainRemoval({ store, applyChange, provisioner, leadership, clock, logger }),
    createAutomaticCompactions({ store, leadership, clock, logger }),
    createSettlements({ store, applyChange, leadership, clock, logger }),
    ...createChecks({
      store,
      leadership,
      provisioner,
      baseDomain,
      dnsKeeper,
      dnsServer,
      dnsNamesPerSecond,
      publisher: dnsPublisher,
      clock,
      logger,
    }),
    ...(isShared ? [createWindowRemoval({ store, leadership, clock, logger })] : []),
    previewWorkers,
    queryWorkers,
    ...(dnsPublisher === undefined ? [] : [createDnsPublishing(dnsPublisher, leadership, { clock, logger })]),
    ...(certificates.renewals === undefined ? [] : [certificates.renewals]),
    feed,
  ]
  await startAll(services)
  const servers = [nodeServer, server]
  let url: string
  let nodeApiUrl: string
  try {
    const { region, bootstrapApiKey: apiKey, s3Buckets: buckets } = config
    const made = await bootstrap({
      ...{ store, applyChange, objectStores, storeTraits, buckets, clock, logger, region, hosts, apiKey },
      isNodeInUse: await isNodeInUse(config.paths),
      isAtTerminal: hooks.isAtTerminal === true,
    })
    if (made !== undefined) await onBootstrap(made)
    const link = await people.firstLink()
    if (link !== undefined) await onFirstLink?.(link)
    nodeApiUrl = await nodeServer.listen({ ...config.nodeApiListen })
    url = await server.listen({ ...config.controlListen })
  } catch (error) {
    await nodeServer.close()
    await stopAll(services, AbortSignal.abort())
    throw error
  }
  const addresses = {
    url: reachableUrl(url, config.controlListen, config.baseUrl),
    node_api: reachableUrl(nodeApiUrl, config.nodeApiListen, config.baseUrl),
  }
  logger.info({ ...addresses, database: store.dialect }, 'control listening')

  return {
    url,
    nodeApiUrl,
    async stop(signal) {
      stopping = true
      const closeConnections = () => {
        for (const { server } of servers) server.closeAllConnections()
      }
      signal.addEventListener('abort', closeConnections, { once: true })
      if (signal.aborted) closeConnections()
      const closed = Promise.all(servers.map((each) => each.close()))
      await stopAll(services, signal)
      await closed
      opened.close()
      dnsProvider?.close()
      await store.close()
    },
  }
}
