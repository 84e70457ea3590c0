/** Ingest as a process: opens files, control, certificates and the addresses that it listens at, and runs the plane on them. */

import { baseUrlOf, certificateSourcesOf, controlOf, httpUrl, ingestAddressesOf } from '#config/addresses.ts'
import type { Config } from '#config/config.ts'
import { Copies } from '#copies/copies.ts'
import { copyFolder } from '#copies/copy-names.ts'
import { openCopyStore } from '#copies/open-store.ts'
import { assertCanListen } from '#lib/assert-can-listen.ts'
import { Certificate } from '#lib/certificate.ts'
import type { Clock } from '#lib/clock.ts'
import { lockExclusively } from '#lib/exclusive.ts'
import type { Files } from '#lib/files.ts'
import { createMetrics, registerTlsMetrics } from '#lib/metrics.ts'
import { type ListenAddress, reachableAt } from '#lib/option-types.ts'
import type { Random } from '#lib/random.ts'
import { startAll, stopAll } from '#lib/service.ts'
import { system } from '#lib/system.ts'
import type { Logger } from '#lib/telemetry.ts'
import { readVersion } from '#lib/version.ts'
import { LocalLogWriter } from '#log/local/log-writer.ts'
import { LocalSegmentSource } from '#log/local/segment-source.ts'
import { endAdoption } from '#node/adoption.ts'
import { CheckedClock } from '#node/checked-clock.ts'
import { ControlClient } from '#node/control-client.ts'
import { NodeCredential } from '#node/credential.ts'
import { HandedCertificate } from '#node/handed-certificate.ts'
import { readOrCreateNodeId } from '#node/identity.ts'
import { readJoinToken } from '#node/join-token.ts'
import { removeNodeLeftovers } from '#node/leftovers.ts'
import { NodeFence } from '#node/node-fence.ts'
import { openTracer } from '#node/open-tracer.ts'
import { Registration } from '#node/registration.ts'
import { startWorkerThread } from './http/otlp/worker-thread.ts'
import { composeIngest } from './plane.ts'
import { reportedAddresses } from './report/reported-addresses.ts'

export type AppHooks = {
  readonly logger: Logger
  readonly clock: Clock
  readonly files?: Files
  readonly random?: Random
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

export async function startIngest(config: Config, hooks: AppHooks): Promise<App> {
  const { logger, clock: machine, files, random, supervisorPid } = { ...system, ...hooks }
  warnAboutMemory(config, logger)
  const { paths } = config
  const nodeId = await readOrCreateNodeId(paths, { files, random })
  const version = await readVersion()
  // Two processes on one directory would recover each other's open segments.
  const lock = lockExclusively(paths.ingestLock)
  await endAdoption(files, paths.nodeAdoption)
  // Before this node registers with control.
  const addresses = ingestAddressesOf(config)
  await assertCanListen(addresses.http, 'INLET_INGEST_LISTEN')
  if (addresses.mqtt !== null) await assertCanListen(addresses.mqtt, 'INLET_MQTT_LISTEN')
  const { secret: joinSecret, pin } = await readJoinToken(config, { files, random })
  const credential = await NodeCredential.open(nodeId, paths.nodeCredential, { files, random })
  const control = await ControlClient.open({ ...controlOf(config), pin, credential, files, clock: machine })
  await removeNodeLeftovers(files, paths, 'ingest')
  const clock = await CheckedClock.start({ machine, logger }, control, nodeId)
  const node = describeNode(config, version, logger)
  const fence = await NodeFence.open({ path: paths.nodeFence, files, logger })
  const registration = new Registration({ client: control, credential, joinSecret, node, logger })
  const traced = await openTracer(config, { process: 'ingest', nodeId, files, clock, random, logger })
  const handed =
    certificateSourcesOf(config).ingest === 'issued'
      ? new HandedCertificate({ control, path: paths.nodeCertificate, files, clock, random, logger })
      : undefined
  const certificate = handed ?? (await openCertificate(config, clock, logger))
  const registry = createMetrics('ingest', version, clock)
  registerTlsMetrics(registry, { ingest: certificate }, clock)

  const { copyUrl } = config
  const copyStore = copyUrl === null ? undefined : await openCopyStore({ ...config, copyUrl }, { files, clock, random })
  const { services, http, mqtt, departure } = composeIngest(config, {
    ...{ nodeId, control, registration, fence, addresses, certificate, handed, registry, supervisorPid },
    ...{ files, clock, machine, random, logger },
    openLog: (hooks) =>
      new LocalLogWriter({
        ...{ directory: paths.wal, files, clock, random, logger, ...hooks },
        // Waiting bytes are in flight, too. Above that, this bound refuses nobody who has a share of the memory.
        limits: { waitingBytesMax: 2 * config.maxInFlightBytes },
      }),
    openCopies:
      copyStore &&
      ((hooks) =>
        new Copies({
          ...{ nodeId, windowMs: config.copyWindowMs, store: copyStore.store, files, clock, random, logger, ...hooks },
          folder: copyFolder(copyStore.prefix, nodeId),
          segments: new LocalSegmentSource({ directory: paths.wal, files, clock }),
        })),
    ownBaseUrl: baseUrlOf(config),
    startThread: startWorkerThread,
    tracer: traced?.tracer,
    traces: traced && new (await import('./http/request-traces.ts')).RequestTraces({ ...traced, nodeId, clock, logger }),
  })
  await startAll(services)
  const url = httpUrl(http.address, certificate === undefined ? 'http' : 'https')
  logger.info({ url, mqtt: mqtt.address, nodeId }, 'ingest listening')
  return {
    url,
    mqtt: mqtt.address,
    leave: () => departure.leave(),
    async stop(signal) {
      await stopAll(services, signal)
      copyStore?.close()
      lock[Symbol.dispose]()
    },
  }
}

function describeNode(config: Config, version: string, logger: Logger) {
  const address = httpUrl(reachableAt(config.ingestListen, config.advertiseAddresses))
  return {
    region: config.region,
    ...reportedAddresses(config, logger),
    ingest_address: address.slice('http://'.length),
    version,
    tls_ports: certificateSourcesOf(config).ingest === null ? [] : listenPorts(config),
  }
}

function openCertificate(config: Config, clock: Clock, logger: Logger): Promise<Certificate | undefined> {
  const { tlsCertificateFile: certificateFile, tlsKeyFile: keyFile } = config
  return Certificate.open({ setting: 'INLET_TLS', certificateFile, keyFile, clock, logger })
}

function listenPorts({ ingestListen, mqttListen }: Config): number[] {
  return [ingestListen, mqttListen].flatMap((listen) => listen?.port ?? [])
}

/** A request needs twice its size, because the compressed and the decompressed body are in memory at the same time. */
function warnAboutMemory({ maxInFlightBytes, maxRequestBytes }: Config, logger: Logger): void {
  if (maxInFlightBytes >= 2 * maxRequestBytes) return
  logger.warn('INLET_MAX_IN_FLIGHT_BYTES is less than twice INLET_MAX_REQUEST_BYTES: the largest requests are always rejected')
}
