import { hourMs } from '#lib/time-units.ts'
import type { Control } from '#node/control-client.ts'
import type { Outbox } from '#node/outbox.ts'
import { OutboxFiles } from '#node/outbox-files.ts'
import type { SnapshotFeed } from '#node/snapshot-feed.ts'
import type { MarkerSeal } from '../publish/marker-seal.ts'
import { Scrubber, type ScrubberOptions } from './scrubber.ts'
import { readLocalSeqs } from './seq-gaps.ts'

type Parts = Pick<ScrubberOptions, 'segments' | 'stores' | 'files' | 'clock' | 'random' | 'logger'> & {
  readonly nodeId: string
  readonly control: Control
  readonly seal: MarkerSeal
  readonly outbox: Outbox
  readonly feed: SnapshotFeed
}

/** The part of the configuration that decides how often and how fast a node scrubs. */
export type ScrubConfig = {
  readonly paths: { readonly scrubState: string; readonly outbox: string }
  readonly scrubIntervalHours: number
  readonly scrubBytesPerSecond: number
}

/** Composes the scrub of a node, which asks control what to verify. */
export function composeScrubber(
  { paths, scrubIntervalHours, scrubBytesPerSecond }: ScrubConfig,
  { nodeId: node_id, control, seal, outbox, feed, ...parts }: Parts,
): Scrubber {
  return new Scrubber({
    ...parts,
    intervalMs: scrubIntervalHours * hourMs,
    bytesPerSecond: scrubBytesPerSecond,
    path: paths.scrubState,
    outbox: new OutboxFiles({ directory: paths.outbox, files: parts.files }),
    own: {
      nodeId: node_id,
      seal,
      localSeqs: (log) => readLocalSeqs(parts.segments, log),
    },
    isReported: (id) => outbox.has(id),
    isConfigured: () => feed.current() !== undefined,
    delivered: {
      endpoints: (after, signal) => control.fetchScrubEndpoints({ node_id, after }, signal),
      commits: (endpoint_id, after, signal) => control.fetchScrubCommits({ node_id, endpoint_id, after }, signal),
      known: async (endpoint_id, ids, signal) =>
        new Set((await control.fetchScrubKnown({ node_id, endpoint_id, ids: [...ids] }, signal)).ids),
    },
  })
}
