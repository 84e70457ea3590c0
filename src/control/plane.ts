/**
 * Control composed from its ports. It opens nothing: app.ts does.
 *
 * Owns: which part gets which, and the order in which they start and stop. Does not own: what any part does.
 */

import type { X509Certificate } from 'node:crypto'
import type { Registry } from 'prom-client'
import { KeyUse } from '#auth/key-use.ts'
import { createSignIn } from '#auth/lazy-sign-in.ts'
import { secretsEqual } from '#auth/secrets.ts'
import type { SignInProvider } from '#auth/sign-in.ts'
import type { Clock } from '#lib/clock.ts'
import type { Keyring } from '#lib/keyring.ts'
import { registerTlsMetrics, registerWorkerMetrics } from '#lib/metrics.ts'
import type { ListenAddress } from '#lib/option-types.ts'
import { rootOf } from '#lib/root-certificate.ts'
import type { Service } from '#lib/service.ts'
import type { Logger } from '#lib/telemetry.ts'
import { ThrottledWarnings } from '#lib/throttled-warnings.ts'
import { dayMs } from '#lib/time-units.ts'
import type { StoreTraits } from '#model/object-store.ts'
import { hasAllowedBuckets } from '#model/object-store.ts'
import type { Role } from '#model/person.ts'
import type { Certificates } from '#naming/certificates/open.ts'
import { checkLimits } from '#naming/checks/limits.ts'
import type { DnsKeeper } from '#naming/checks/seen.ts'
import { createChecks } from '#naming/checks/start.ts'
import type { DnsProvider } from '#naming/dns/provider.ts'
import { publishedNodes } from '#naming/dns/published-nodes.ts'
import { createDnsPublishing, DnsPublisher } from '#naming/dns/publisher.ts'
import type { HostOptions } from '#naming/ingest-host.ts'
import { ControlOutages } from '#naming/outages.ts'
import type { OpenedObjectStores } from '#objects/open.ts'
import type { SignedUrls } from '#objects/signed-urls.ts'
import type { PreviewWorkers } from '#preview/preview-workers.ts'
import type { QueryWorkers } from '#query/query-workers.ts'
import { recordKeyUse } from '#store/accounts/key-use.ts'
import { findRole } from '#store/accounts/people.ts'
import { createApplyChange } from '#store/cluster/changes.ts'
import { createDatabaseWatch } from '#store/cluster/database-watch.ts'
import { currentEpoch } from '#store/cluster/epoch.ts'
import { EpochFeed, registerEpochMetrics } from '#store/cluster/epoch-feed.ts'
import { createLeadership, registerLeadershipMetric } from '#store/cluster/leadership.ts'
import { listCertificates } from '#store/naming/certificates.ts'
import { type Db, type Store, transact } from '#store/store.ts'
import { issuedCertificates } from './fleet/issued-certificates.ts'
import { JobLeases } from './fleet/job-leases.ts'
import { joinTokenService } from './fleet/join-tokens.ts'
import { leftOnDiskService } from './fleet/left-on-disk.ts'
import { type NodeAccess, nodeAccess } from './fleet/node-access.ts'
import { inventoryService } from './fleet/node-inventory.ts'
import { nodeService } from './fleet/node-reports.ts'
import { reportedCommits } from './fleet/reported-commits.ts'
import { scrubService } from './fleet/scrubs.ts'
import { Snapshots } from './fleet/snapshots.ts'
import { takeOverService } from './fleet/take-overs.ts'
import { buildNodeServer } from './http/node-api/server.ts'
import type { HttpServer, HttpServerOptions } from './http/requests/http-server.ts'
import { registerRequestSeconds } from './http/requests/http-server.ts'
import { createWindowRemoval, rateLimitStore } from './http/requests/shared-rate-limits.ts'
import { buildServer, type Services } from './http/server.ts'
import { controlLimits } from './limits.ts'
import { registerCertificateMetrics } from './metrics/certificate-metrics.ts'
import { DeliveredMetrics } from './metrics/delivered-metrics.ts'
import { DeliveryProcesses } from './metrics/delivery-processes.ts'
import { registerLagMetrics } from './metrics/lag-metrics.ts'
import { registerLossMetrics } from './metrics/loss-metrics.ts'
import { registerNodeMetrics } from './metrics/node-metrics.ts'
import { registerUsageMetrics } from './metrics/usage-metrics.ts'
import { accountService, watchSuspensions } from './resources/accounts.ts'
import { AuditTrail } from './resources/audit-trail.ts'
import { bindingService } from './resources/bindings.ts'
import { BucketFiles } from './resources/bucket-files.ts'
import { commitService } from './resources/commits.ts'
import { compactionService } from './resources/compactions.ts'
import { deliveredRecordService } from './resources/delivered-records.ts'
import { destinationService } from './resources/destinations.ts'
import { dlqFileService } from './resources/dlq-files.ts'
import { DownloadLinks } from './resources/download-links.ts'
import { endpointService } from './resources/endpoints.ts'
import { jobService } from './resources/jobs.ts'
import { keyService } from './resources/keys.ts'
import { lossService } from './resources/losses.ts'
import { peopleService } from './resources/people.ts'
import { previewService } from './resources/previews.ts'
import { Queries } from './resources/queries.ts'
import { quotaService } from './resources/quotas.ts'
import { receiptService } from './resources/receipts.ts'
import { secretService } from './resources/secrets.ts'
import { seriesService } from './resources/series.ts'
import { shadowService } from './resources/shadows.ts'
import { Suggestions } from './resources/suggestions.ts'
import { testEventService } from './resources/test-events.ts'
import { Tokens } from './resources/tokens.ts'
import { viewComparisonService } from './resources/view-comparisons.ts'
import { viewService } from './resources/views.ts'
import { EndpointStates } from './status/endpoint-states.ts'
import { createAutomaticCompactions } from './upkeep/automatic-compactions.ts'
import { createCanaryStops } from './upkeep/canaries.ts'
import { createCheckpoints } from './upkeep/checkpoints.ts'
import { createDrainRemoval } from './upkeep/drains.ts'
import { createHousekeeping } from './upkeep/housekeeping.ts'
import { createLossSearch, type SearchEndpoint } from './upkeep/losses-in-buckets.ts'
import { createCommitRecovery, type RebuildRegion } from './upkeep/lost-commits.ts'
import { createNewEndpointChecks } from './upkeep/new-endpoints.ts'
import { createRevocationNotes } from './upkeep/revocations.ts'
import { createSettlements } from './upkeep/settlements.ts'
import { createUndeliveredSamples } from './upkeep/undelivered-samples.ts'

export type ControlPorts = {
  readonly store: Store
  readonly clock: Clock
  readonly logger: Logger
  readonly baseUrl: string
  readonly hosts: HostOptions
  readonly secrets: Readonly<Record<'downloads' | 'sessions' | 'join' | 'operatorToken', string>> & { readonly keyring: Keyring }
  readonly signedUrls: SignedUrls
  readonly objects: OpenedObjectStores
  readonly storeTraits: StoreTraits
  /** Undefined if Inlet publishes no records. */
  readonly dnsProvider: DnsProvider | undefined
  readonly signInProvider: SignInProvider | null
  readonly previewWorkers: PreviewWorkers
  readonly queryWorkers: QueryWorkers
  readonly registry: Registry
  readonly rebuildRegion: RebuildRegion | undefined
  readonly searchEndpoint: SearchEndpoint | undefined
}

export type ControlConfig = {
  readonly addressRequestsPerMinute: number
  readonly apiRequestsPerMinute: number
  readonly auditKeptDays: number
  readonly awsPrincipalArn: string | null
  readonly baseDomain: string | null
  readonly commitsKeptDays: number
  /** In seconds. */
  readonly takeoverAfter: number | null
  readonly dnsNamesPerSecond: number | null
  readonly dnsProvider: 'static' | 'rfc2136' | 'route53' | null
  readonly dnsServer: ListenAddress | null
  readonly dnsTtlSeconds: number
  readonly exchangeRequestsPerMinute: number
  readonly metricsToken: string | null
  readonly oidcRole: Role | null
  readonly publicKeys: string
  readonly requestTimeoutSeconds: number
  readonly trustProxy: string | null
}

export type ControlBase = ReturnType<typeof composeBase>

export type ControlPlane = {
  /** In the order of their start. They stop in reverse: the feed first, so that long polls end before the listener waits for its requests. */
  readonly services: readonly Service[]
  readonly server: HttpServer
  readonly nodeServer: HttpServer
  /** Refuses new requests, waits for those in flight while `stopServices` runs, and cuts them off when the signal aborts. */
  closeServers(signal: AbortSignal, stopServices: () => Promise<void>): Promise<void>
}

/** Composes the base of all other parts of control. `newestHeartbeatMs` is from before this process. */
export function composeBase(config: ControlConfig, ports: ControlPorts, newestHeartbeatMs: number | null) {
  const { store, clock, logger, baseUrl, hosts, secrets, storeTraits, registry } = ports
  const { keyring } = secrets
  const outages = new ControlOutages(clock, newestHeartbeatMs)
  const databaseWatch = createDatabaseWatch(store, { clock, logger, registry })
  const readEpoch = async () => {
    const epoch = await currentEpoch(store.db)
    // A database that only reads records no heartbeat.
    if (databaseWatch?.waitsForStandby !== true) outages.noteContact()
    return epoch
  }
  const feed = new EpochFeed({ readEpoch, clock, logger })
  const applyChange = createApplyChange(store, feed)
  const reportKeyUse = (ids: readonly string[]) => transact(store, (db) => recordKeyUse(db, ids, clock.now()))
  const keyUse = new KeyUse({ report: reportKeyUse, clock, logger })
  const dnsKeeper: DnsKeeper = config.dnsProvider === null ? 'nobody' : ports.dnsProvider === undefined ? 'operator' : 'inlet'
  const publicKeys = config.publicKeys === 'true'
  return {
    ...{ outages, databaseWatch, feed, applyChange, keyUse, dnsKeeper, publicKeys },
    leadership: createLeadership(store, { clock, logger }),
    tokens: new Tokens({ store, keyring, applyChange, feed, keyUse, clock, logger, issuer: baseUrl }),
    auditTrail: new AuditTrail({ store, keptMs: config.auditKeptDays * dayMs, clock, logger }),
    accounts: accountService({ store, applyChange, clock, logger, hasAllowedBuckets: hasAllowedBuckets(storeTraits) }),
    isSuspended: watchSuspensions(store, feed),
    people: peopleService({ store, baseUrl, providerRole: config.oidcRole, publicKeys, clock, logger }),
    endpointStates: new EndpointStates({ store, clock, hosts, baseUrl, outages, dnsKeeper }),
  }
}

/** The rest of control, once there are certificates. `developmentCa` is the root of the certificates that control issues by itself. */
export async function composeControl(
  config: ControlConfig,
  ports: ControlPorts,
  base: ControlBase,
  certificates: Certificates,
  { developmentCa }: { readonly developmentCa: Buffer | undefined },
): Promise<ControlPlane> {
  const { store, clock, logger, baseUrl, objects, registry, secrets } = ports
  const objectStores = objects.stores
  const byTenant = config.metricsToken !== null
  registerMetrics(ports, base, certificates, byTenant)
  const downloadLinks = new DownloadLinks({ store, objectStores, logger })
  const delivered = new DeliveredMetrics(registry, { byView: byTenant, clock })
  const parts: Parts = {
    downloadLinks,
    delivered,
    bucketFiles: new BucketFiles({ store, objectStores, logger }),
    access: nodeAccess({ store, joinSecret: secrets.join, registry, clock, logger }),
    dns: composeDns(config, ports, base),
    rootCertificate() {
      const { cert } = certificates.nodeApi?.options ?? {}
      return cert && rootOf(cert)
    },
    developmentCa,
  }
  const http = {
    ...{ baseUrl, logger, clock },
    requestSeconds: registerRequestSeconds(registry),
    requestTimeoutMs: config.requestTimeoutSeconds * 1000,
  }
  let isStopping = false
  const nodeServer = await buildNodeApi(config, ports, base, certificates, parts, http)
  const server = await buildApi(config, ports, base, certificates, parts, { ...http, isStopping: () => isStopping })
  return {
    ...{ server, nodeServer },
    services: listServices(config, ports, base, certificates, parts),
    async closeServers(signal, stopServices) {
      isStopping = true
      const servers = [nodeServer, server]
      const closeConnections = () => {
        for (const { server: each } of servers) each.closeAllConnections()
      }
      signal.addEventListener('abort', closeConnections, { once: true })
      if (signal.aborted) closeConnections()
      const closed = Promise.all(servers.map((each) => each.close()))
      await stopServices()
      await closed
    },
  }
}

/** Parts that the two servers and the background work share. */
type Parts = {
  readonly downloadLinks: DownloadLinks
  readonly delivered: DeliveredMetrics
  readonly bucketFiles: BucketFiles
  readonly access: NodeAccess
  readonly dns: ReturnType<typeof composeDns>
  readonly rootCertificate: () => X509Certificate | undefined
  readonly developmentCa: Buffer | undefined
}

type Http = Omit<HttpServerOptions, 'certificate'>

function registerMetrics(
  { store, clock, registry, previewWorkers, queryWorkers }: ControlPorts,
  { leadership, feed }: ControlBase,
  { certificateName, control, nodeApi }: Certificates,
  byTenant: boolean,
): void {
  if (byTenant) registerUsageMetrics(registry, { store, clock })
  registerLagMetrics(registry, { store, clock, byEndpoint: byTenant })
  registerNodeMetrics(registry, { store, clock })
  registerLossMetrics(registry, { store })
  registerWorkerMetrics(registry, { preview: () => previewWorkers.pids, query: () => queryWorkers.pids })
  registerLeadershipMetric(registry, leadership)
  registerEpochMetrics(registry, feed)
  if (certificateName !== undefined)
    registerCertificateMetrics(registry, { readCertificates: () => listCertificates(store.db), clock })
  registerTlsMetrics(registry, { control, node_api: nodeApi }, clock)
}

/** Returns what publishes records; undefined if Inlet publishes none. */
function composeDns(
  { dnsTtlSeconds: ttlSeconds, baseDomain }: ControlConfig,
  { store, dnsProvider: provider, registry, clock, logger }: ControlPorts,
  { outages }: ControlBase,
) {
  if (provider === undefined) return undefined
  const options = { store, outages, clock, logger, provider, ttlSeconds }
  const publisher = baseDomain === null ? undefined : new DnsPublisher({ ...options, baseDomain: baseDomain.toLowerCase() })
  publisher?.registerMetrics(registry)
  return { publisher, published: publishedNodes(options) }
}

function buildNodeApi(
  config: ControlConfig,
  { store, clock, logger, baseUrl, secrets, registry }: ControlPorts,
  { feed, tokens }: ControlBase,
  { certificateName, nodeApi: certificate }: Certificates,
  { access, delivered, dns, rootCertificate }: Parts,
  http: Http,
): Promise<HttpServer> {
  const readPublicKeys = (db: Db) => tokens.publicKeys(db)
  return buildNodeServer({
    ...{ ...http, certificate, access, rootCertificate },
    services: {
      nodes: nodeService({
        ...{ store, feed, deliveryProcesses: new DeliveryProcesses(registry, clock), clock, logger },
        published: dns?.published,
      }),
      snapshots: new Snapshots({
        ...{ store, feed, readPublicKeys, keyring: secrets.keyring, clock, certificateName },
        issuer: baseUrl,
        baseDomain: config.baseDomain,
      }),
      certificates: issuedCertificates({ store, keyring: secrets.keyring, certificateName }),
      commits: reportedCommits({ store, clock, delivered }),
      leftOnDisks: leftOnDiskService({ store, clock, logger }),
      takeOvers: takeOverService({ store, clock, logger, afterMs: config.takeoverAfter && config.takeoverAfter * 1_000 }),
      jobLeases: new JobLeases({ store, keyring: secrets.keyring, clock, logger, delivered }),
      scrubs: scrubService({ store, keptMs: config.commitsKeptDays * dayMs, clock }),
    },
  })
}

function buildApi(
  config: ControlConfig,
  ports: ControlPorts,
  base: ControlBase,
  certificates: Certificates,
  parts: Parts,
  { isStopping, ...http }: Http & { readonly isStopping: () => boolean },
): Promise<HttpServer> {
  const { store, clock, logger, baseUrl, secrets, registry, objects, signedUrls, signInProvider } = ports
  const { tokens, people, isSuspended, databaseWatch } = base
  const signIn = createSignIn({
    ...{ database: store.db, baseUrl, secret: secrets.sessions, provider: signInProvider, clock },
    providerTimeoutMs: controlLimits.signInProviderTimeoutMs,
    ...{ useLink: people.useLink, refuseToJoin: people.refuseToJoin, join: people.join },
    warnings: new ThrottledWarnings({ clock, logger, intervalMs: controlLimits.warnIntervalMs }),
  })
  const databaseReasons = () =>
    currentEpoch(store.db).then(
      () => [],
      () => ['the database cannot be read'],
    )
  return buildServer({
    ...http,
    certificate: certificates.control,
    metrics: registry,
    metricsToken: config.metricsToken,
    credentials: {
      verifyToken: (token) => tokens.verify(token),
      isOperatorToken: (token) => secretsEqual(token, secrets.operatorToken),
      origin: new URL(baseUrl).origin,
      findSession: (cookie) => signIn.find(cookie),
      findRole: (person_id, account_id) => findRole(store.db, person_id, account_id),
      isSuspended,
    },
    notReadyReasons: async () => (isStopping() ? ['shutting down'] : databaseReasons()),
    readyNotes: () => databaseWatch?.notes ?? [],
    downloads: { verify: (url) => signedUrls.verify(url), read: async (name) => objects.local?.read(name) },
    requestsPerMinute: config.apiRequestsPerMinute,
    exchangesPerMinute: config.exchangeRequestsPerMinute,
    requestsPerMinutePerAddress: config.addressRequestsPerMinute,
    rateLimitStore: store.dialect === 'postgres' ? rateLimitStore(store, clock) : undefined,
    trustedProxies: config.trustProxy?.split(',').map((part) => part.trim()) ?? [],
    services: { ...base, ...composeApiServices(config, ports, base, parts) },
    signIn,
    signInProvider,
  })
}

function composeApiServices(
  { awsPrincipalArn }: ControlConfig,
  { store, clock, logger, secrets: { keyring }, objects, storeTraits, previewWorkers, queryWorkers }: ControlPorts,
  { applyChange, publicKeys, endpointStates, tokens }: ControlBase,
  { downloadLinks, bucketFiles, rootCertificate, developmentCa }: Parts,
): Omit<Services, 'auditTrail' | 'accounts' | 'tokens' | 'people'> {
  const objectStores = objects.stores
  return {
    keys: keyService({ store, applyChange, publicKeys, clock, logger }),
    destinations: destinationService({ store, applyChange, objectStores, storeTraits, clock, logger, awsPrincipalArn }),
    endpoints: endpointService({ store, applyChange, endpointStates, clock, logger }),
    testEvents: testEventService({ store, endpointStates, tokens, clock, ca: developmentCa }),
    views: viewService({ store, applyChange, definitions: previewWorkers, clock }),
    dlqFiles: dlqFileService({ store, downloadLinks }),
    previews: previewService({ store, keyring, runner: previewWorkers }),
    secrets: secretService({ store, applyChange, keyring, clock, logger }),
    deliveredRecords: deliveredRecordService({ store, bucketFiles, reader: previewWorkers }),
    suggestions: new Suggestions({ store, bucketFiles, runner: previewWorkers }),
    comparisons: viewComparisonService({ store, keyring, bucketFiles, runner: previewWorkers, clock }),
    bindings: bindingService({ store, applyChange, clock }),
    shadows: shadowService({ store, applyChange, clock }),
    commits: commitService({ store, downloadLinks }),
    losses: lossService({ store, clock, logger }),
    receipts: receiptService({ store }),
    jobs: jobService({ store, clock }),
    compactions: compactionService({ store, clock }),
    inventory: inventoryService({ store, clock, logger }),
    joinTokens: joinTokenService({ store, rootCertificate, clock, logger }),
    queries: new Queries({ store, objectStores, runner: queryWorkers, logger }),
    quotas: quotaService({ store, clock }),
    series: seriesService({ store, clock }),
  }
}

function listServices(
  config: ControlConfig,
  {
    store,
    clock,
    logger,
    registry,
    objects,
    rebuildRegion: rebuild,
    searchEndpoint: search,
    previewWorkers,
    queryWorkers,
  }: ControlPorts,
  { applyChange, auditTrail, databaseWatch, dnsKeeper, feed, keyUse, leadership, endpointStates, tokens }: ControlBase,
  certificates: Certificates,
  { dns }: Parts,
): readonly Service[] {
  const { baseDomain, dnsServer } = config
  const defaultNames = config.dnsProvider === 'route53' ? checkLimits.billedNamesMax : checkLimits.namesMax
  const dnsNamesPerSecond = config.dnsNamesPerSecond ?? defaultNames
  const publisher = dns?.publisher
  const keptMs = config.commitsKeptDays * dayMs
  const { stores } = objects
  return [
    ...certificates.services,
    tokens,
    keyUse,
    leadership,
    ...(databaseWatch === undefined ? [] : [databaseWatch]),
    ...createCheckpoints(store, { clock, logger }),
    createHousekeeping({ store, auditTrail, commitsKeptMs: keptMs, leadership, clock, logger }),
    ...(rebuild === undefined ? [] : [createCommitRecovery({ store, stores, rebuild, keptMs, leadership, clock, logger })]),
    ...(search === undefined ? [] : [createLossSearch({ store, stores, search, keptMs, leadership, clock, logger })]),
    createDrainRemoval({ store, applyChange, endpointStates, leadership, clock, logger }),
    createAutomaticCompactions({ store, leadership, clock, logger }),
    createSettlements({ store, applyChange, leadership, clock, logger }),
    createUndeliveredSamples({ store, leadership, clock, logger }),
    createRevocationNotes({ store, leadership, clock, logger, registry }),
    createCanaryStops({ store, applyChange, leadership, clock, logger, registry }),
    createNewEndpointChecks({ store, leadership, endpointStates, clock, logger }),
    ...createChecks({ store, leadership, baseDomain, dnsKeeper, dnsServer, dnsNamesPerSecond, publisher, clock, logger }),
    ...(store.dialect === 'postgres' ? [createWindowRemoval({ store, leadership, clock, logger })] : []),
    previewWorkers,
    queryWorkers,
    ...(publisher === undefined ? [] : [createDnsPublishing(publisher, leadership, { clock, logger })]),
    ...(certificates.renewals === undefined ? [] : [certificates.renewals]),
    feed,
  ]
}
