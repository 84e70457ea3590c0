/** The composition of the ingest process. */
import { KeyUse } from '#auth/key-use.ts'
import type { Config } from '#config.ts'
import { baseUrlOf, certificateSourcesOf, controlOf, httpUrl, ingestAddressesOf } from '#config-addresses.ts'
import { assertCanListen } from '#lib/assert-can-listen.ts'
import { Certificate } from '#lib/certificate.ts'
import type { Clock } from '#lib/clock.ts'
import { lockExclusively } from '#lib/exclusive.ts'
import { type Files, systemFiles } from '#lib/files.ts'
import { createMetrics, registerTlsMetrics } from '#lib/metrics.ts'
import { MetricsText } from '#lib/metrics-text.ts'
import { type ListenAddress, reachableAt } from '#lib/option-types.ts'
import { startAll, stopAll } from '#lib/service.ts'
import type { Logger } from '#lib/telemetry.ts'
import { readVersion } from '#lib/version.ts'
import type { Heartbeat as HeartbeatMessage } from '#model/node-protocol.ts'
import { BlockedFile } from '#node/blocked-file.ts'
import { boundBlocked, boundReasons } from '#node/bounded-report.ts'
import { CheckedClock } from '#node/checked-clock.ts'
import { ControlClient } from '#node/control-client.ts'
import { NodeCredential } from '#node/credential.ts'
import { HandedCertificate } from '#node/handed-certificate.ts'
import { Heartbeat } from '#node/heartbeat.ts'
import { heartbeatSink } from '#node/heartbeat-sink.ts'
import { readOrCreateNodeId } from '#node/identity.ts'
import { readJoinToken } from '#node/join-token.ts'
import { removeNodeLeftovers } from '#node/leftovers.ts'
import { openTracer } from '#node/open-tracer.ts'
import { Registration } from '#node/registration.ts'
import { SnapshotFeed } from '#node/snapshot-feed.ts'
import { Wal } from '#wal/wal.ts'
import { Admission } from './admission.ts'
import { Allowances } from './allowances.ts'
import { Authenticator } from './authenticator.ts'
import { blockedEndpoints } from './blocked-endpoints.ts'
import { Configuration } from './configuration.ts'
import { ConnectionBudget } from './connection-budget.ts'
import { Departure } from './departure.ts'
import { EndpointCounts } from './endpoint-counters.ts'
import { FairShares } from './fair-shares.ts'
import { findDeliveredBy } from './find-delivered.ts'
import { Gate } from './gate.ts'
import { Cors } from './http/cors.ts'
import { HttpCounters, registerHttpMetrics } from './http/metrics.ts'
import { HttpServer } from './http/server.ts'
import { StoredRequests } from './idempotency/stored-requests.ts'
import { ingestLimits } from './limits.ts'
import { registerNodeMetrics } from './metrics.ts'
import { MqttCounters, registerMqttMetrics } from './mqtt/metrics.ts'
import { MqttServer } from './mqtt/server.ts'
import { Sessions } from './mqtt/sessions.ts'
import { WebSocketRoute } from './mqtt/websocket-route.ts'
import { reportedAddresses } from './reported-addresses.ts'
import { SeriesReport } from './series-report.ts'
import { SpaceReport } from './space-report.ts'

export type AppHooks = {
  readonly logger: Logger
  readonly clock: Clock
  readonly files?: Files
  readonly supervisorPid?: number
}

/** The addresses it listens at, with the port that the system chose if the configured port is 0. `mqtt` is MQTT without WebSocket. */
export type App = {
  readonly url: string
  readonly mqtt: ListenAddress | undefined
  /** Call it before `stop`. Resolves when clients no longer find this node. */
  leave(): Promise<void>
  stop(signal: AbortSignal): Promise<void>
}

const controlTimeoutMs = 10_000
const ignore = () => undefined

export async function startIngest(
  config: Config,
  { logger, clock: machine, files = systemFiles, supervisorPid }: AppHooks,
): Promise<App> {
  warnAboutMemory(config, logger)
  const nodeId = await readOrCreateNodeId(config.paths)
  const version = await readVersion()
  // Two processes on one directory would recover each other's open segments.
  const lock = lockExclusively(config.paths.ingestLock)
  // Before this node registers with control.
  const addresses = ingestAddressesOf(config)
  await assertCanListen(addresses.http, 'INLET_INGEST_LISTEN')
  if (addresses.mqtt !== null) await assertCanListen(addresses.mqtt, 'INLET_MQTT_LISTEN')
  const { secret: joinSecret, pin } = await readJoinToken(config)
  const credential = await NodeCredential.open(nodeId, config.paths.nodeCredential)
  const control = await ControlClient.open({ ...controlOf(config), pin, credential, timeoutMs: controlTimeoutMs })
  await removeNodeLeftovers(files, config.paths, 'ingest')
  const clock = await CheckedClock.start({ machine, logger }, control, nodeId)
  const registration = new Registration({
    client: control,
    credential,
    joinSecret,
    node: {
      region: config.region,
      ...reportedAddresses(config, logger),
      ingest_address: httpUrl(reachableAt(config.ingestListen, config.advertiseAddresses)).slice('http://'.length),
      version,
      tls_ports: certificateSourcesOf(config).ingest === null ? [] : listenPorts(config),
    },
    logger,
  })
  const feed = new SnapshotFeed({
    client: control,
    nodeId,
    kinds: ['installation', 'keys', 'endpoints'],
    path: config.paths.ingestSnapshot,
    registration,
    files,
    clock,
    logger,
  })

  const disk = new FairShares(config.diskBudgetBytes, {
    reserve: Math.floor(config.diskBudgetBytes * ingestLimits.diskPartForNewcomers),
  })
  const storedRequests = new StoredRequests({
    directory: config.paths.storedRequests,
    max: config.idempotencyKeysMax,
    files,
    clock,
    logger,
  })
  const traced = await openTracer(config, { process: 'ingest', nodeId, clock, logger })
  const traces = traced && new (await import('./request-traces.ts')).RequestTraces({ ...traced, nodeId, clock, logger })
  const wal = new Wal({
    directory: config.paths.wal,
    files,
    clock,
    logger,
    observer: storedRequests,
    findDelivered: findDeliveredBy(control, nodeId),
    ...(traces === undefined ? {} : { onSealed: (segment) => traces.sealed(segment) }),
    onUsage: (logName, bytes) => disk.share(logName).force(bytes),
    // What waits is in flight, too. Above that, this bound refuses nobody who has a share of the memory.
    limits: { waitingBytesMax: 2 * config.maxInFlightBytes },
  })
  const admission = new Admission({
    wal,
    space: () => files.space(config.paths.wal),
    maxInFlightBytes: config.maxInFlightBytes,
    disk,
    diskReserveBytes: config.diskReserveBytes,
    clock,
    logger,
  })
  const authenticator = new Authenticator({ contact: feed.contact, publicKeys: config.publicKeys === 'true', clock })
  const allowances = new Allowances({ nodeId, control, clock, logger })
  const keyUse = new KeyUse({
    report: (keys, signal) => control.reportKeyUse({ node_id: nodeId, keys: [...keys] }, signal),
    connected: () => sessions.keyIds(),
    clock,
    logger,
  })
  const counts = new EndpointCounts()
  const series = new SeriesReport({ nodeId, counts, control, clock, logger })
  const configuration = new Configuration({ authenticator, allowances, wal, admission, storedRequests, logger })
  const gate = new Gate({ configuration, capacity: admission, allowances, keyUse, counts, wal, storedRequests, clock, logger })

  const connections = new ConnectionBudget({
    max: config.maxConnections,
    maxUnauthenticated: config.maxUnauthenticatedConnections,
    maxPerAddress: config.maxConnectionsPerAddress,
    clock,
  })
  const handed =
    certificateSourcesOf(config).ingest === 'issued'
      ? new HandedCertificate({ control, path: config.paths.nodeCertificate, files, clock, logger })
      : undefined
  const certificate =
    handed ??
    (await Certificate.open({
      setting: 'INLET_TLS',
      certificateFile: config.tlsCertificateFile,
      keyFile: config.tlsKeyFile,
      clock,
      logger,
    }))
  const isSecure = certificate !== undefined
  const problems = () => [...storedRequests.problems(), ...(clock.problem === undefined ? [] : [clock.problem])]
  const notReadyReasons = () => [...gate.notReadyReasons(), ...(handed?.notReadyReasons() ?? [])]

  const mqttCounters = new MqttCounters()
  const sessions = new Sessions({
    gate,
    authenticator,
    packetMsMax: config.requestTimeoutSeconds * 1000,
    counters: mqttCounters,
    clock,
    logger,
  })
  const mqtt = new MqttServer({ listen: addresses.mqtt, connections, certificate, sessions, clock })

  const registry = createMetrics('ingest', version, clock)
  const httpCounters = new HttpCounters()
  const http = new HttpServer({
    listen: addresses.http,
    connections,
    certificate,
    cors: config.corsOrigins === null ? undefined : new Cors(config.corsOrigins),
    requestTimeoutSeconds: config.requestTimeoutSeconds,
    exchange: {
      nodeId,
      // Without a setting of its own a node elsewhere would name an address of its machine.
      baseUrl: () => (config.baseUrl === null ? feed.current()?.token_issuer : undefined) ?? baseUrlOf(config),
      maxRequestBytes: config.maxRequestBytes,
      authenticator,
      gate,
      counters: httpCounters,
      traces,
      clock,
    },
    operator: {
      notReadyReasons: () => (departure.isLeaving ? ['shutting down'] : notReadyReasons()),
      readyNotes: () => [...notesAbout(feed, configuration.epoch), ...problems()],
      metrics: new MetricsText(registry, clock),
      metricsToken: config.metricsToken,
    },
    upgrade: new WebSocketRoute({ sessions, isSecure, clock }),
    logger,
  })

  const departure = new Departure({
    secondsMin: config.leaveSecondsMin,
    secondsMax: config.leaveSecondsMax,
    announce: () => sink.sendHeartbeat(message(), AbortSignal.timeout(ingestLimits.announceMs)).then(ignore, ignore),
    async endConnections(withinMs) {
      http.endConnections()
      await sessions.endInTurns(withinMs)
    },
    clock,
    logger,
  })

  const spaceReport = new SpaceReport(() => admission.space, clock)
  const message = (): HeartbeatMessage => {
    const reasons = notReadyReasons()
    return {
      process: 'ingest',
      node_id: nodeId,
      ...feed.inUse(configuration.epoch),
      healthy: reasons.length === 0,
      reasons: boundReasons([...reasons, ...problems()]),
      disk_full: admission.isDiskFull(),
      leaving: departure.isLeaving,
      blocked: boundBlocked([...storedRequests.refused(), ...blockedEndpoints(wal.blocked()), ...admission.fullEndpoints()]),
      ...spaceReport.next(),
    }
  }
  const sink = heartbeatSink(control, feed, clock, (recorded) => {
    departure.heard(recorded)
    spaceReport.recorded()
  })
  const heartbeat = new Heartbeat({ control: sink, message, clock, logger })
  registerTlsMetrics(registry, { ingest: certificate }, clock)
  registerHttpMetrics(registry, httpCounters)
  registerMqttMetrics(registry, mqttCounters, {
    connections: () => sessions.connections,
    byUsername: config.metricsToken !== null,
  })
  registerNodeMetrics(registry, {
    connections,
    inFlightBytes: () => admission.inFlightBytes,
    acknowledgements: { http: httpCounters.acknowledgements, mqtt: mqttCounters.acknowledgements },
    wal,
    diskBudgetBytes: config.diskBudgetBytes,
    diskFreeBytes: () => admission.space?.free_bytes ?? Number.NaN,
    idempotencyKeys: () => storedRequests.count,
    idempotencyIndexBytes: () => storedRequests.indexBytes,
    idempotencyKeysDamaged: () => storedRequests.damaged,
    supervisorPid,
    appliedEpoch: () => configuration.epoch,
    controlContactAgeMs: () => feed.contact.ageMs,
    refusals: () => [...admission.refusals, ...connections.refusals],
    poolsUsed: () => [
      ['memory', admission.memory.poolUsedRatio],
      ['disk', disk.poolUsedRatio],
      ['connections', connections.shares.poolUsedRatio],
      ['idempotency_keys', storedRequests.poolUsedRatio],
    ],
    largestAccounts: config.metricsToken === null ? undefined : () => disk.largest(ingestLimits.accountsShown),
    quotaRefusals: allowances.refusals,
  })

  feed.subscribe((snapshot) => {
    configuration.apply(snapshot)
    connections.configure(snapshot.endpoints)
    sessions.apply(snapshot.endpoints)
    handed?.want(snapshot.certificate)
    heartbeat.beatNow()
  })
  const blockedFile = new BlockedFile({
    path: config.paths.ingestBlocked,
    blocked: () => new Map(wal.blocked().map(({ logName, reason }) => [logName, reason])),
    files,
    // Commands on this machine compare it with theirs.
    clock: machine,
    logger,
  })
  // Stopped in reverse: MQTT and HTTP finish accepted requests, which are then reported, and the WAL seals last.
  const services = [
    ...(traced === undefined ? [] : [traced.tracer]),
    storedRequests,
    wal,
    feed,
    admission,
    allowances,
    keyUse,
    series,
    ...(certificate === undefined ? [] : [certificate]),
    http,
    mqtt,
    heartbeat,
    blockedFile,
  ]
  await startAll(services)
  const url = httpUrl(http.address, isSecure ? 'https' : 'http')
  logger.info({ url, mqtt: mqtt.address, nodeId }, 'ingest listening')
  return {
    url,
    mqtt: mqtt.address,
    leave: () => departure.leave(),
    async stop(signal) {
      await stopAll(services, signal)
      lock[Symbol.dispose]()
    },
  }
}

function listenPorts({ ingestListen, mqttListen }: Config): number[] {
  return [ingestListen, mqttListen].flatMap((listen) => listen?.port ?? [])
}

function notesAbout({ contact, refusal }: SnapshotFeed, epoch: number): readonly string[] {
  const { mayLackChanges, ageMs } = contact
  if (refusal !== undefined)
    return [`this node keeps the configuration of epoch ${epoch}, and refuses that of control: ${refusal}`]
  // Without a configuration the node is not ready, and says so.
  if (!mayLackChanges || epoch < 0) return []
  return [
    `cut off from control for ${Math.round(ageMs / 1000)} s: this node works with its last configuration (epoch ${epoch}), and refuses keys that are newer`,
  ]
}

/** A request needs twice its size, because the compressed and the decompressed body are in memory at the same time. */
function warnAboutMemory({ maxInFlightBytes, maxRequestBytes }: Config, logger: Logger): void {
  if (maxInFlightBytes >= 2 * maxRequestBytes) return
  logger.warn('INLET_MAX_IN_FLIGHT_BYTES is less than twice INLET_MAX_REQUEST_BYTES: the largest requests are always rejected')
}
