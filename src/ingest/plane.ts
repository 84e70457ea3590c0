/**
 * Ingest composed from its ports. It opens nothing: app.ts does.
 *
 * Owns: which part gets which, and the order in which they start and stop. Does not own: what any part does.
 */
import type { Registry } from 'prom-client'
import { KeyUse } from '#auth/key-use.ts'
import type { Copies, CopiesHooks } from '#copies/copies.ts'
import type { Clock } from '#lib/clock.ts'
import type { Files } from '#lib/files.ts'
import { MetricsText } from '#lib/metrics-text.ts'
import type { ListenAddress } from '#lib/option-types.ts'
import type { Random } from '#lib/random.ts'
import type { ServedCertificate } from '#lib/served-certificate.ts'
import type { Service } from '#lib/service.ts'
import type { Logger } from '#lib/telemetry.ts'
import type { LogHooks, LogWriter } from '#log/log-writer.ts'
import { BlockedFile } from '#node/blocked-file.ts'
import type { CheckedClock } from '#node/checked-clock.ts'
import { type Control, ControlError } from '#node/control-client.ts'
import type { HandedCertificate } from '#node/handed-certificate.ts'
import type { NodeFence } from '#node/node-fence.ts'
import { PlaceCheck } from '#node/place-check.ts'
import type { Registration } from '#node/registration.ts'
import { SnapshotFeed } from '#node/snapshot-feed.ts'
import { findCommittedSeqsBy } from './find-committed-seqs.ts'
import { findDeliveredBy } from './find-delivered.ts'
import { Allowances } from './gate/allowances.ts'
import { Authenticator } from './gate/authenticator.ts'
import { ClientAddresses } from './gate/client-addresses.ts'
import { CommitWaits } from './gate/commit-waits.ts'
import { Configuration } from './gate/configuration.ts'
import { ConnectionBudget } from './gate/connection-budget.ts'
import { needsCopy, noCopyStore } from './gate/copied.ts'
import { CredentialLease } from './gate/credential-lease.ts'
import { EndpointCounts } from './gate/endpoint-counters.ts'
import type { EndpointTable } from './gate/endpoint-table.ts'
import { FairShares } from './gate/fair-shares.ts'
import { Gate } from './gate/gate.ts'
import { gateLimits } from './gate/limits.ts'
import { NodeRoom } from './gate/node-room.ts'
import { Cors } from './http/cors.ts'
import { HttpCounters, registerHttpMetrics } from './http/metrics.ts'
import { ExportConversions, type ExportConversionsOptions } from './http/otlp/export-conversions.ts'
import type { RequestTraces } from './http/request-traces.ts'
import { HttpServer } from './http/server.ts'
import { StoredRequests } from './idempotency/stored-requests.ts'
import { MqttCounters, registerMqttMetrics } from './mqtt/metrics.ts'
import { MqttServer } from './mqtt/server.ts'
import { Sessions } from './mqtt/sessions.ts'
import { WebSocketRoute } from './mqtt/websocket-route.ts'
import { registerCopyMetrics } from './report/copy-metrics.ts'
import { Departure } from './report/departure.ts'
import { IngestReport } from './report/ingest-report.ts'
import { reportLimits } from './report/limits.ts'
import { registerNodeMetrics } from './report/metrics.ts'
import { SeriesReport } from './report/series-report.ts'

export type IngestPorts = {
  readonly nodeId: string
  readonly control: Control
  readonly registration: Registration
  readonly fence: NodeFence
  /** Called once. */
  readonly openLog: (hooks: LogHooks) => LogWriter
  /** Called once. Undefined: this node has no copy store. */
  readonly openCopies: ((hooks: CopiesHooks) => Copies) | undefined
  readonly files: Files
  /** Control's time. */
  readonly clock: CheckedClock
  /** The machine's own, with which commands on this machine compare. */
  readonly machine: Clock
  readonly random: Random
  /** Starts a thread that makes records of export requests. */
  readonly startThread: ExportConversionsOptions['startThread']
  readonly logger: Logger
  readonly addresses: { readonly http: ListenAddress; readonly mqtt: ListenAddress | null }
  /** Undefined: the node serves without TLS. */
  readonly certificate: (ServedCertificate & Service) | undefined
  /** The same certificate if control hands it to this node. */
  readonly handed: HandedCertificate | undefined
  /** Where clients reach this installation, if neither the configuration nor control says so. */
  readonly ownBaseUrl: string
  readonly registry: Registry
  /** Undefined if no supervisor started this process. */
  readonly supervisorPid: number | undefined
  readonly tracer: Service | undefined
  /** Undefined if no request is traced. */
  readonly traces: RequestTraces | undefined
}

export type IngestConfig = {
  readonly paths: Readonly<
    Record<'ingestSnapshot' | 'storedRequests' | 'adoptedRequests' | 'wal' | 'ingestBlocked' | 'nodeFence', string>
  >
  readonly baseUrl: string | null
  readonly credentialLease: number | null
  readonly corsOrigins: ConstructorParameters<typeof Cors>[0] | null
  readonly diskBudgetBytes: number
  readonly diskReserveBytes: number
  readonly idempotencyKeysMax: number
  readonly leaveSecondsMax: number
  readonly leaveSecondsMin: number
  readonly maxConnections: number
  readonly maxConnectionsPerAddress: number
  readonly maxInFlightBytes: number
  readonly maxRequestBytes: number
  readonly maxUnauthenticatedConnections: number
  readonly metricsToken: string | null
  readonly publicKeys: string
  readonly requestTimeoutSeconds: number
  readonly trustProxy: string | null
}

export type IngestPlane = {
  /** In the order of their start. They stop in reverse: MQTT and HTTP finish accepted requests, which are then reported, and the WAL seals last. */
  readonly services: readonly Service[]
  readonly http: HttpServer
  readonly mqtt: MqttServer
  readonly departure: Departure
  /** The handlers of both protocols call it. So may another one. */
  readonly gate: Gate
  readonly nodeRoom: NodeRoom
}

export function composeIngest(config: IngestConfig, ports: IngestPorts): IngestPlane {
  const { paths } = config
  const { nodeId, control, registration, fence, files, clock, machine, random, logger, certificate, handed } = ports
  const feed = new SnapshotFeed({
    ...{ client: control, nodeId, registration, fence, files, clock, random, logger },
    kinds: ['installation', 'keys', 'endpoints'],
    path: paths.ingestSnapshot,
  })
  const storage = composeStorage(config, ports, feed, () => entry.configuration.endpoints)
  const lease = new CredentialLease({
    seconds: config.credentialLease,
    // A configuration that is refused may lack what control has revoked.
    isCurrent: async (signal) => feed.refusal === undefined && (await feed.isCurrent(signal)),
    onEnded: () => servers.sessions.recheck(),
    ...{ clock, random, logger },
  })
  const entry = composeEntry(config, ports, storage, { contact: feed.contact, lease, keyIds: () => servers.sessions.keyIds() })
  const { log, copies, place, nodeRoom, storedRequests } = storage
  const { configuration, gate, allowances, keyUse, series, commitWaits } = entry
  const report = new IngestReport({
    ...{ nodeId, control, feed, configuration, gate, nodeRoom, storedRequests, copies, log, handed, clock, random, logger },
    isLeaving: () => departure.isLeaving,
    onRecorded: (recorded) => departure.onHeartbeatRecorded(recorded),
  })
  const servers = composeServers(config, ports, { ...storage, ...entry, feed, report })
  const { http, mqtt, sessions } = servers
  const departure = new Departure({
    secondsMin: config.leaveSecondsMin,
    secondsMax: config.leaveSecondsMax,
    announce: () => report.announce(),
    async endConnections(withinMs) {
      commitWaits.end()
      http.endConnections()
      await sessions.endInTurns(withinMs)
    },
    isFenced: () => fence.reason !== undefined,
    clock,
    logger,
  })
  registerMetrics(config, ports, { ...storage, ...entry, ...servers, feed })
  feed.subscribe((snapshot) => {
    configuration.apply(snapshot)
    sessions.recheck()
    handed?.want(snapshot.certificate)
    report.sendNow()
  })
  fence.onFinal(() => {
    for (const { id } of feed.current()?.endpoints ?? []) void log.end(id, 'fenced')
    commitWaits.end()
    sessions.recheck()
    void report.stop()
  })
  const blockedFile = new BlockedFile({
    path: paths.ingestBlocked,
    blocked: () => new Map(log.blocked().map(({ logName, reason }) => [logName, reason])),
    ...{ files, clock: machine, logger },
  })
  const optional = (service: Service | undefined) => (service === undefined ? [] : [service])
  return {
    services: [
      ...optional(ports.tracer),
      ...[storedRequests, log],
      ...optional(copies),
      ...[feed, place, lease, nodeRoom, allowances, keyUse, series],
      ...optional(certificate),
      // It stops before the servers, which respond to all who wait.
      ...[http, mqtt, commitWaits, report, blockedFile],
    ],
    ...{ http, mqtt, departure, gate, nodeRoom },
  }
}

type Storage = {
  readonly disk: FairShares
  readonly storedRequests: StoredRequests
  readonly log: LogWriter
  /** Undefined: this node has no copy store. */
  readonly copies: Copies | undefined
  readonly place: PlaceCheck
  readonly nodeRoom: NodeRoom
}

function composeStorage(
  config: IngestConfig,
  { nodeId, control, fence, openLog, openCopies, files, clock, machine, logger, traces }: IngestPorts,
  feed: SnapshotFeed,
  endpoints: () => EndpointTable | undefined,
): Storage {
  const { paths, diskBudgetBytes, diskReserveBytes, maxInFlightBytes, idempotencyKeysMax: max } = config
  const reserve = Math.floor(diskBudgetBytes * gateLimits.partForNewcomers)
  const disk = new FairShares(diskBudgetBytes, { reserve })
  const { storedRequests: directory, adoptedRequests: adoptedDirectory } = paths
  const storedRequests = new StoredRequests({ directory, adoptedDirectory, max, files, clock, logger })
  const place = new PlaceCheck({
    ...{ fence, path: paths.nodeFence, files, clock: machine, logger },
    ask: (signal) => control.fetchLastHeartbeat(nodeId, signal),
    onRefused: () => feed.registerAgain(),
  })
  const findDelivered = findDeliveredBy({ control, contact: feed.contact, nodeId })
  const copies = openCopies?.({
    findDelivered,
    keys: storedRequests.keys,
    async isAccepted(signal) {
      try {
        await control.fetchLastHeartbeat(nodeId, signal)
        return true
      } catch (error) {
        if (error instanceof ControlError && error.status === 401) return false
        throw error
      }
    },
    endpoint(logName) {
      const table = endpoints()
      const endpoint = table?.get(logName)
      return table && { isOwned: endpoint !== undefined, isCopied: endpoint !== undefined && needsCopy(endpoint) }
    },
  })
  const log = openLog({
    observer: storedRequests,
    findDelivered,
    ...(copies === undefined ? {} : { copy: (piece) => copies.copy(piece) }),
    findCommittedSeqs: findCommittedSeqsBy({ control, contact: feed.contact, nodeId }),
    mayAcknowledge: () => place.pending(),
    ...(traces === undefined ? {} : { onSealed: (segment) => traces.sealed(segment) }),
    onUsage: (logName, bytes) => disk.share(logName).force(bytes),
  })
  const space = () => files.space(paths.wal)
  const nodeRoom = new NodeRoom({ log, space, maxInFlightBytes, disk, diskReserveBytes, clock, logger })
  return { disk, storedRequests, log, copies, place, nodeRoom }
}

type Entry = {
  readonly connections: ConnectionBudget
  readonly allowances: Allowances
  readonly keyUse: KeyUse
  readonly series: SeriesReport
  readonly commitWaits: CommitWaits
  readonly configuration: Configuration
  readonly gate: Gate
}

type EntryParts = {
  readonly contact: SnapshotFeed['contact']
  readonly lease: CredentialLease
  /** Keys of open connections. */
  readonly keyIds: () => Iterable<string>
}

/** Composes the parts that decide whether a request is admitted. */
function composeEntry(
  config: IngestConfig,
  { nodeId, control, fence, clock, random, logger }: IngestPorts,
  { log, copies, nodeRoom, storedRequests }: Storage,
  { contact, lease, keyIds }: EntryParts,
): Entry {
  const authenticator = new Authenticator({ contact, publicKeys: config.publicKeys === 'true', clock })
  const allowances = new Allowances({ nodeId, control, clock, random, logger })
  const keyUse = new KeyUse({
    report: (keys, signal) => control.reportKeyUse({ node_id: nodeId, keys: [...keys] }, signal),
    connected: keyIds,
    clock,
    logger,
  })
  const connections = new ConnectionBudget({
    max: config.maxConnections,
    maxUnauthenticated: config.maxUnauthenticatedConnections,
    maxPerAddress: config.maxConnectionsPerAddress,
    clock,
  })
  const counts = new EndpointCounts()
  const commitWaits = new CommitWaits({ nodeId, control, clock, logger })
  const series = new SeriesReport({ nodeId, counts, control, clock, random, logger })
  const configuration = new Configuration({
    authenticator,
    log,
    shares: [nodeRoom, storedRequests, allowances, connections],
    logger,
  })
  const gate = new Gate({
    configuration,
    authenticator,
    fence,
    lease,
    clientAddresses: new ClientAddresses(config.trustProxy),
    rooms: nodeRoom,
    allowances,
    keyUse,
    counts,
    log,
    storedRequests,
    copies: copies ?? noCopyStore,
    commitWaits,
    clock,
    logger,
  })
  return { connections, allowances, keyUse, series, commitWaits, configuration, gate }
}

type Servers = {
  readonly http: HttpServer
  readonly httpCounters: HttpCounters
  readonly mqtt: MqttServer
  readonly mqttCounters: MqttCounters
  readonly sessions: Sessions
}

function composeServers(
  config: IngestConfig,
  { nodeId, addresses, certificate, ownBaseUrl, registry, traces, clock, random, startThread, logger }: IngestPorts,
  parts: Entry & { readonly feed: SnapshotFeed; readonly report: IngestReport },
): Servers {
  const { gate, connections, feed, report } = parts
  const mqttCounters = new MqttCounters()
  const sessions = new Sessions({
    ...{ gate, clock, random, logger },
    packetMsMax: config.requestTimeoutSeconds * 1000,
    counters: mqttCounters,
  })
  const mqtt = new MqttServer({ listen: addresses.mqtt, connections, certificate, sessions, clock })
  const httpCounters = new HttpCounters()
  const http = new HttpServer({
    ...{ listen: addresses.http, connections, certificate, logger },
    cors: config.corsOrigins === null ? undefined : new Cors(config.corsOrigins),
    requestTimeoutSeconds: config.requestTimeoutSeconds,
    exchange: {
      ...{ nodeId, gate, traces, clock },
      conversions: new ExportConversions({ startThread, clock }),
      // Without a setting of its own a node elsewhere would name an address of its machine.
      baseUrl: () => (config.baseUrl === null ? feed.current()?.token_issuer : undefined) ?? ownBaseUrl,
      maxRequestBytes: config.maxRequestBytes,
      counters: httpCounters,
    },
    operator: {
      notReadyReasons: () => report.notReadyReasons(),
      readyNotes: () => report.notes(),
      metrics: new MetricsText(registry, clock),
      metricsToken: config.metricsToken,
    },
    upgrade: new WebSocketRoute({ sessions, isSecure: certificate !== undefined, clock }),
  })
  return { http, httpCounters, mqtt, mqttCounters, sessions }
}

function registerMetrics(
  { diskBudgetBytes, metricsToken }: IngestConfig,
  { registry, supervisorPid }: IngestPorts,
  parts: Storage & Entry & Servers & { readonly feed: SnapshotFeed },
): void {
  const { disk, storedRequests, log, nodeRoom, allowances, configuration, gate, connections, feed } = parts
  const { httpCounters, mqttCounters, sessions } = parts
  if (parts.copies !== undefined) registerCopyMetrics(registry, parts.copies)
  registerHttpMetrics(registry, httpCounters)
  registerMqttMetrics(registry, mqttCounters, {
    connections: () => sessions.connections,
    byUsername: metricsToken !== null,
  })
  registerNodeMetrics(registry, {
    ...{ connections, log, diskBudgetBytes, supervisorPid },
    inFlightBytes: () => nodeRoom.inFlightBytes,
    acknowledgements: gate.acknowledgements,
    diskFreeBytes: () => nodeRoom.space?.free_bytes ?? Number.NaN,
    idempotencyKeys: () => storedRequests.count,
    idempotencyIndexBytes: () => storedRequests.indexBytes,
    idempotencyKeysDamaged: () => storedRequests.damaged,
    appliedEpoch: () => configuration.epoch,
    controlContactAgeMs: () => feed.contact.ageMs,
    refusals: () => [...nodeRoom.refusals, ...connections.refusals],
    poolsUsed: () => [
      ['memory', nodeRoom.memory.poolUsedRatio],
      ['disk', disk.poolUsedRatio],
      ['connections', connections.shares.poolUsedRatio],
      ['idempotency_keys', storedRequests.poolUsedRatio],
    ],
    largestAccounts: metricsToken === null ? undefined : () => disk.largest(reportLimits.accountsShown),
    quotaRefusals: allowances.refusals,
  })
}
