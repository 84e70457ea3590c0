import type { Logger } from '#lib/telemetry.ts'
import { parseArtifactKind } from '#model/artifact.ts'
import type { SegmentCommit, ViewOutcome } from '#model/commit.ts'

/** The fields of the log line `segment committed`. */
export type CommitEvent = {
  readonly segment: string
  readonly endpoint: string
  readonly records: number
  /** From the start of the build to the last upload, without earlier attempts. */
  readonly duration_ms: number
  /** From the seal to the last upload: also the time for which the segment was held, or the node was down. */
  readonly since_sealed_ms: number
  readonly views: readonly Pick<ViewOutcome, 'view_name' | 'view_version' | 'dropped' | 'dlq' | 'failed'>[]
  /** Files that have every record. */
  readonly files: readonly ('parquet' | 'segment')[]
  /** Whether an earlier run delivered the segment. */
  readonly is_adopted: boolean
}

export function logCommit(logger: Logger, commit: SegmentCommit, isAdopted: boolean): void {
  const { id, endpoint_id, records, duration_ms, sealed_at, uploaded_at, artifacts, views } = commit
  const types = Object.keys(artifacts).map((kind) => parseArtifactKind(kind)?.type)
  const event: CommitEvent = {
    segment: id,
    endpoint: endpoint_id,
    records,
    duration_ms,
    // The clock may have been set back.
    since_sealed_ms: Math.max(0, Date.parse(uploaded_at) - Date.parse(sealed_at)),
    views: views.flatMap(({ view_name, view_version, dropped, dlq, failed, is_shadow }) =>
      is_shadow === true ? [] : [{ view_name, view_version, dropped, dlq, failed }],
    ),
    files: (['parquet', 'segment'] as const).filter((type) => types.includes(type)),
    is_adopted: isAdopted,
  }
  logger.notice(event, 'segment committed')
}
