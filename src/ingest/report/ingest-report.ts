/**
 * Reports the state of ingest: to control every two seconds, and to readiness probes.
 *
 * Owns: why the node is not ready, what is wrong besides, and what a heartbeat of ingest says. Does not own: when it is sent (node/heartbeat.ts).
 */
import type { Random } from '#lib/random.ts'
import type { Service } from '#lib/service.ts'
import type { Logger } from '#lib/telemetry.ts'
import type { LogWriter } from '#log/log-writer.ts'
import type { HeartbeatRecorded, Heartbeat as Message } from '#model/node-protocol.ts'
import { boundBlocked, boundReasons } from '#node/bounded-report.ts'
import type { CheckedClock } from '#node/checked-clock.ts'
import type { Control } from '#node/control-client.ts'
import type { HandedCertificate } from '#node/handed-certificate.ts'
import { Heartbeat, type HeartbeatSink } from '#node/heartbeat.ts'
import { heartbeatSink } from '#node/heartbeat-sink.ts'
import type { SnapshotFeed } from '#node/snapshot-feed.ts'
import type { Configuration } from '../gate/configuration.ts'
import type { CopyStore } from '../gate/copied.ts'
import type { Gate } from '../gate/gate.ts'
import type { NodeRoom } from '../gate/node-room.ts'
import type { StoredRequests } from '../idempotency/stored-requests.ts'
import { blockedEndpoints } from './blocked-endpoints.ts'
import { reportLimits } from './limits.ts'
import { SpaceReport } from './space-report.ts'

export type IngestReportOptions = {
  readonly nodeId: string
  readonly control: Control
  readonly feed: SnapshotFeed
  readonly configuration: Configuration
  readonly gate: Gate
  readonly nodeRoom: NodeRoom
  readonly storedRequests: StoredRequests
  /** Undefined: this node has no copy store. */
  readonly copies: CopyStore | undefined
  readonly log: Pick<LogWriter, 'blocked'>
  readonly handed: HandedCertificate | undefined
  readonly isLeaving: () => boolean
  readonly onRecorded: (recorded: HeartbeatRecorded) => void
  readonly clock: CheckedClock
  readonly random: Random
  readonly logger: Logger
}

const ignore = () => undefined

export class IngestReport implements Service {
  readonly name = 'report of ingest'
  readonly #options: IngestReportOptions
  readonly #heartbeat: Heartbeat
  readonly #sink: HeartbeatSink
  readonly #space: SpaceReport

  constructor(options: IngestReportOptions) {
    const { control, feed, nodeRoom, onRecorded, clock, random, logger } = options
    this.#options = options
    this.#space = new SpaceReport(() => nodeRoom.space, clock)
    this.#sink = heartbeatSink(control, feed, clock, (recorded) => {
      onRecorded(recorded)
      this.#space.recorded()
    })
    this.#heartbeat = new Heartbeat({ control: this.#sink, message: () => this.#message(), clock, random, logger })
  }

  start(): Promise<void> {
    return this.#heartbeat.start()
  }

  stop(): Promise<void> {
    return this.#heartbeat.stop()
  }

  sendNow(): void {
    this.#heartbeat.beatNow()
  }

  /** Tells control at once, or gives up soon. Never rejects. */
  async announce(): Promise<void> {
    const late = this.#options.clock.timeout(reportLimits.announceMs)
    await this.#sink.sendHeartbeat(this.#message(), late).then(ignore, ignore)
  }

  notReadyReasons(): readonly string[] {
    return this.#options.isLeaving() ? ['shutting down'] : this.#unhealthyReasons()
  }

  /** Problems that do not keep the node from being ready. */
  notes(): readonly string[] {
    const { feed, configuration } = this.#options
    return [...notesAbout(feed, configuration.epoch), ...this.#problems()]
  }

  #unhealthyReasons(): readonly string[] {
    const { gate, handed } = this.#options
    return [...gate.notReadyReasons(), ...(handed?.notReadyReasons() ?? [])]
  }

  #problems(): readonly string[] {
    const { storedRequests, copies, clock } = this.#options
    const [uncopied] = this.#uncopiedEndpoints()
    return [storedRequests.problems(), clock.problem ?? [], uncopied === undefined ? [] : (copies?.refusal ?? [])].flat()
  }

  #message(): Message {
    const { nodeId, feed, configuration, nodeRoom, storedRequests, log, copies, isLeaving } = this.#options
    const reasons = this.#unhealthyReasons()
    return {
      process: 'ingest',
      node_id: nodeId,
      ...feed.inUse(configuration.epoch),
      healthy: reasons.length === 0,
      reasons: boundReasons([...reasons, ...this.#problems()]),
      disk_full: nodeRoom.isDiskFull(),
      leaving: isLeaving(),
      // Control of the release before does not know it.
      ...(copies === undefined ? {} : { copy_store: true }),
      blocked: boundBlocked([
        ...storedRequests.refused(),
        ...blockedEndpoints(log.blocked()),
        ...nodeRoom.fullEndpoints(),
        ...this.#uncopiedEndpoints(),
      ]),
      ...this.#space.next(),
    }
  }

  /** Control knows of itself where a node without a copy store is in the way. */
  #uncopiedEndpoints(): readonly { readonly endpoint_id: string; readonly reason: string }[] {
    const { configuration, copies } = this.#options
    const refusal = copies?.refusal
    if (refusal === undefined) return []
    return (configuration.endpoints?.copied() ?? []).map((endpoint_id) => ({
      endpoint_id,
      reason: `new data is refused: ${refusal}`,
    }))
  }
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
