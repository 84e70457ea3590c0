/** Control as one node sees it: what is recorded stays recorded. Calls of nodes get lost, and so do answers. */
import { sleep } from '#lib/clock.ts'
import { listKeys, type SegmentCommit } from '#model/commit.ts'
import { digestSections } from '#model/section-digest.ts'
import type { Snapshot } from '#model/snapshot.ts'
import type { SnapshotRequest } from '#model/snapshot-sections.ts'
import { type Control, ControlError } from '#node/control-client.ts'
import { parseUpdates } from '#node/snapshot-sections.ts'
import { snapshotLines } from '../support/snapshot-lines.ts'
import type { Delays, Life } from './kernel.ts'

/** `cut`: the call does not arrive. `answer lost`: it does, and the caller learns nothing. */
export type NetworkFault = 'cut' | 'answer lost'

export class SimulatedControl {
  /** By id, each as it was first reported. */
  readonly commits = new Map<string, SegmentCommit>()
  /** Ids that were reported again with another content. */
  readonly conflicts: string[] = []
  /** Machines that do not reach it. */
  readonly cutOff = new Set<string>()
  /** The machine whose credential is accepted; undefined before an adoption: any. */
  #owner: string | undefined
  readonly #snapshot: Snapshot
  readonly #delays: Delays
  readonly #fault: () => NetworkFault | undefined

  constructor(snapshot: Snapshot, delays: Delays, fault: () => NetworkFault | undefined) {
    this.#snapshot = snapshot
    this.#delays = delays
    this.#fault = fault
  }

  /** Whether another machine has adopted the log. */
  refuses(machine: string): boolean {
    return this.#owner !== undefined && this.#owner !== machine
  }

  /** From then on only this machine is accepted. */
  takeOver(life: Life, machine: string): Promise<void> {
    return this.#call(life, machine, 'take over', () => {
      this.#owner = machine
    })
  }

  async #call<T>(life: Life, machine: string, what: string, act: () => T): Promise<T> {
    const drawn = this.#fault()
    const fault = this.cutOff.has(machine) ? 'cut' : drawn
    const result = await life.call(what, this.#delays, () => (fault === 'cut' ? undefined : { value: act() }))
    if (result === undefined || fault === 'answer lost') throw new ControlError(0, `control cannot be reached: ${fault}`)
    return result.value
  }

  /** The calls of a process. Those that it never makes are missing. */
  clientFor(life: Life, machine: string): Control {
    const call = async <T>(what: string, signal: AbortSignal, act: () => T): Promise<T> => {
      signal.throwIfAborted()
      const checked = () => {
        if (!this.refuses(machine)) return act()
        throw new ControlError(401, 'adopted', { detail: 'adopted', fence: 'node_adopted' })
      }
      const result = await this.#call(life, machine, what, checked)
      signal.throwIfAborted()
      return result
    }
    const client: Partial<Control> = {
      fetchSnapshot: async (request, signal) => {
        const found = await call('snapshot', signal, () => this.#changes(request))
        if (found !== undefined || request.wait_ms === 0) return found
        await sleep(life.clock, request.wait_ms, signal)
        signal.throwIfAborted()
        return undefined
      },
      checkSnapshot: (_, signal) => call('check of the snapshot', signal, () => true),
      fetchCommittedSeqs: (_, signal) => call('committed seqs', signal, () => ({ seqs: {} })),
      fetchLastHeartbeat: (_, signal) => call('last heartbeat', signal, () => ({ seconds_ago: null })),
      sendHeartbeat: (_, signal) => call('heartbeat', signal, () => ({ may_stop_in_seconds: 0 })),
      findCommits: (ids, signal) =>
        call('look-up of commits', signal, () => ({
          commits: ids.flatMap((id) => {
            const found = this.commits.get(id)
            return found === undefined ? [] : [{ id, records: found.records, keys: listKeys(found.artifacts) }]
          }),
        })),
      sendCommits: (commits, signal) => call('commits', signal, () => this.#record(commits)),
      leaseUnits: (_, signal) => call('lease', signal, () => ({ units: [], held: [], more: false })),
      fetchScrubEndpoints: (_, signal) =>
        call('endpoints to scrub', signal, () => ({ endpoints: [], next: null, kept_since: '2026-01-01T00:00:00.000Z' })),
    }
    return client as Control
  }

  #changes({ kinds, digest }: SnapshotRequest): Uint8Array | undefined {
    const lines = snapshotLines(this.#snapshot, kinds)
    const sections = parseUpdates(lines).flatMap((update) => update.sections)
    return digest === digestSections(sections) ? undefined : lines
  }

  #record(commits: readonly SegmentCommit[]) {
    let added = 0
    for (const commit of commits) {
      const known = this.commits.get(commit.id)
      if (known === undefined) {
        this.commits.set(commit.id, commit)
        added += 1
      } else if (JSON.stringify(known.artifacts) !== JSON.stringify(commit.artifacts)) this.conflicts.push(commit.id)
    }
    return { recorded: commits.map(({ id }) => id), new: added }
  }
}
