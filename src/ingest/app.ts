/** The composition of the ingest process. */
import { isIPv4, isIPv6 } from 'node:net'
import { type Config, httpUrl, type ListenAddress } from '#config.ts'
import type { Clock } from '#lib/clock.ts'
import { holdExclusively } from '#lib/exclusive.ts'
import { type Files, systemFiles } from '#lib/files.ts'
import { Periodic } from '#lib/periodic.ts'
import { startAll, stopAll } from '#lib/service.ts'
import { createMetrics, type Logger } from '#lib/telemetry.ts'
import type { Snapshot } from '#model/snapshot.ts'
import { ControlClient } from '#node/control-client.ts'
import { Heartbeat } from '#node/heartbeat.ts'
import { nodeIdentity } from '#node/identity.ts'
import { SnapshotFeed } from '#node/snapshot-feed.ts'
import { Wal } from '#wal/wal.ts'
import { Admission } from './admission.ts'
import { Authenticator } from './authenticator.ts'
import { Certificate } from './certificate.ts'
import { EndpointTable } from './endpoint-table.ts'
import { IngestServer } from './http/server.ts'
import { ingestLimits } from './limits.ts'
import { IngestCounters, registerMetrics } from './metrics.ts'
import { MqttCounters, registerMqttMetrics } from './mqtt/metrics.ts'
import { MqttServer } from './mqtt/server.ts'
import { Sessions } from './mqtt/sessions.ts'

export type AppHooks = { readonly logger: Logger; readonly clock: Clock; readonly files?: Files }

/** Where it listens, also where the configuration leaves the port to the system. `mqtt` is of MQTT without WebSocket. */
export type App = { readonly url: string; readonly mqtt: ListenAddress | undefined; stop(signal: AbortSignal): Promise<void> }

const controlTimeoutMs = 10_000

export async function startIngest(config: Config, { logger, clock, files = systemFiles }: AppHooks): Promise<App> {
  const nodeId = await nodeIdentity(config.paths.nodeId)
  // Two on one directory would recover each other's open segments.
  const lock = holdExclusively(config.paths.ingestLock)
  const controlUrl = config.controlUrl ?? httpUrl(config.controlListen)
  const control = await ControlClient.open({
    url: controlUrl,
    token: config.nodeToken,
    tokenPath: config.paths.nodeToken,
    timeoutMs: controlTimeoutMs,
  })

  const wal = new Wal({ directory: config.paths.wal, files, clock, logger })
  const feed = new SnapshotFeed({
    client: control,
    nodeId,
    path: config.paths.ingestSnapshot,
    register: {
      node_id: nodeId,
      region: config.region,
      ipv4: config.advertiseAddresses.filter(isIPv4),
      ipv6: config.advertiseAddresses.filter(isIPv6),
      ingest_address: httpUrl(config.ingestListen).slice('http://'.length),
    },
    files,
    clock,
    logger,
  })
  if (config.maxInFlightBytes < 2 * config.maxRequestBytes) {
    // As sent and decompressed: both are held at the same time.
    logger.warn(
      'INLET_MAX_IN_FLIGHT_BYTES is less than twice INLET_MAX_REQUEST_BYTES: the largest requests can never be taken in',
    )
  }
  const admission = new Admission({
    storage: wal,
    freeBytes: () => files.freeBytes(config.paths.wal),
    maxInFlightBytes: config.maxInFlightBytes,
    diskBudgetBytes: config.diskBudgetBytes,
    diskReserveBytes: config.diskReserveBytes,
    clock,
    logger,
  })
  const authenticator = new Authenticator({ clock })
  const counters = new IngestCounters()
  const registry = createMetrics('ingest')
  let applied: { readonly epoch: number; readonly endpoints: EndpointTable } | undefined

  const apply = (snapshot: Snapshot) => {
    authenticator.update(snapshot)
    for (const { id, segment_bytes, segment_max_age_seconds, committed_seq } of snapshot.endpoints) {
      wal.configure(id, {
        segmentBytes: segment_bytes,
        segmentMaxAgeMs: segment_max_age_seconds * 1000,
        seqAbove: committed_seq,
      })
    }
    applied = { epoch: snapshot.epoch, endpoints: new EndpointTable(snapshot) }
    sessions.apply(snapshot.endpoints)
    logger.info({ epoch: snapshot.epoch, endpoints: snapshot.endpoints.length }, 'a new configuration is in use')
  }
  const reasons = () => [...(applied === undefined ? ['no configuration yet'] : []), ...admission.reasons()]

  const mqttCounters = new MqttCounters()
  const sessions = new Sessions({
    verifyKey: (secret) => authenticator.verifyKey(secret),
    endpoints: () => applied?.endpoints,
    append: (endpointId, frame) => wal.append(endpointId, frame),
    memory: admission,
    packetMsMax: config.requestTimeoutSeconds * 1000,
    counters: mqttCounters,
    clock,
    logger,
  })
  const certificate =
    config.tlsCertificateFile === null || config.tlsKeyFile === null
      ? undefined
      : await Certificate.read({ certificateFile: config.tlsCertificateFile, keyFile: config.tlsKeyFile, logger })
  const renewal = [certificate ?? []].flat().map(
    (renewed) =>
      new Periodic({
        name: 'certificate',
        intervalMs: ingestLimits.certificatePollMs,
        run: () => renewed.look(),
        failure: 'the TLS certificate cannot be read again; the one before is still served',
        clock,
        logger,
      }),
  )
  const mqtt = new MqttServer({
    listen: config.mqttListen,
    maxConnections: config.maxConnections,
    otherConnections: () => server.connections,
    onDropped: () => {
      counters.droppedConnections += 1
    },
    certificate,
    sessions,
    clock,
  })

  const server = new IngestServer({
    listen: config.ingestListen,
    certificate,
    mqtt: sessions,
    maxConnections: config.maxConnections,
    otherConnections: () => mqtt.connections,
    requestTimeoutSeconds: config.requestTimeoutSeconds,
    ingest: {
      nodeId,
      baseUrl: (config.baseUrl ?? httpUrl(config.controlListen)).replace(/\/+$/, ''),
      maxRequestBytes: config.maxRequestBytes,
      authenticator,
      endpoints: () => applied?.endpoints,
      admission,
      log: wal,
      counters,
      clock,
      logger,
    },
    notReady: reasons,
    registry,
    metricsToken: config.metricsToken,
  })
  const appliedEpoch = () => applied?.epoch ?? -1
  const heartbeat = new Heartbeat({
    control,
    message: () => {
      const why = [...reasons()]
      return { process: 'ingest', node_id: nodeId, applied_epoch: appliedEpoch(), healthy: why.length === 0, reasons: why }
    },
    clock,
    logger,
  })
  registerMetrics(registry, counters, {
    connections: () => server.connections + mqtt.connections,
    inFlightBytes: () => admission.inFlightBytes,
    walBytesOnDisk: () => wal.bytesOnDisk(),
    appliedEpoch,
  })
  registerMqttMetrics(registry, mqttCounters, {
    connections: () => sessions.connections,
    byUsername: config.metricsToken !== null,
  })

  feed.subscribe((snapshot) => {
    apply(snapshot)
    heartbeat.beatNow()
  })
  // Stopped in reverse: MQTT and the server finish what they have taken, and the log seals last.
  const services = [wal, feed, admission, ...renewal, server, mqtt, heartbeat]
  await startAll(services)
  const url = httpUrl(server.address, certificate === undefined ? 'http' : 'https')
  logger.info({ url, mqtt: mqtt.address, nodeId }, 'ingest serves')
  return {
    url,
    mqtt: mqtt.address,
    async stop(signal) {
      await stopAll(services, signal)
      lock[Symbol.dispose]()
    },
  }
}
