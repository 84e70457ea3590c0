/**
 * The configuration of this process: the newest snapshot from control.
 *
 * Owns: its epoch and its endpoint table; that credentials, logs, quotas and shares follow it. Does not own: fetching snapshots, open connections.
 * Law: a snapshot is applied completely before the next request is read.
 */
import type { Logger } from '#lib/telemetry.ts'
import type { LogWriter } from '#log/log-writer.ts'
import type { Snapshot, SnapshotEndpoint } from '#model/snapshot.ts'
import type { Authenticator } from './authenticator.ts'
import { needsCopy } from './copied.ts'
import { EndpointTable } from './endpoint-table.ts'

export type ConfigurationOptions = {
  readonly authenticator: Pick<Authenticator, 'update'>
  readonly log: Pick<LogWriter, 'configure' | 'end' | 'endUnowned'>
  /** Quotas, and the shares of all resources, which are divided among the endpoints. */
  readonly shares: readonly { configure(endpoints: readonly SnapshotEndpoint[]): void }[]
  readonly logger: Logger
}

export class Configuration {
  readonly #options: ConfigurationOptions
  #epoch = -1
  #endpoints: EndpointTable | undefined

  constructor(options: ConfigurationOptions) {
    this.#options = options
  }

  /** -1 until the first snapshot. */
  get epoch(): number {
    return this.#epoch
  }

  /** Undefined until the first snapshot. */
  get endpoints(): EndpointTable | undefined {
    return this.#endpoints
  }

  apply(snapshot: Snapshot): void {
    const { authenticator, log, shares, logger } = this.#options
    authenticator.update(snapshot)
    for (const endpoint of snapshot.endpoints) {
      const { id, account_id, desired_state, account_suspended, segment_bytes, segment_max_age_seconds, committed_seq } = endpoint
      // An endpoint that gets no more data gains nothing by keeping its segment open.
      const isRefused = desired_state === 'paused' || account_suspended
      if (desired_state === 'draining') void log.end(id, 'closed')
      else
        log.configure(id, {
          segmentBytes: segment_bytes,
          segmentMaxAgeMs: isRefused ? 0 : segment_max_age_seconds * 1000,
          seqAbove: committed_seq,
          owner: account_id,
          isCopied: needsCopy(endpoint),
        })
    }
    log.endUnowned(new Set(snapshot.endpoints.map(({ id }) => id)))
    for (const share of shares) share.configure(snapshot.endpoints)
    this.#endpoints = new EndpointTable(snapshot)
    this.#epoch = snapshot.epoch
    logger.info({ epoch: snapshot.epoch, endpoints: snapshot.endpoints.length }, 'configuration applied')
  }
}
