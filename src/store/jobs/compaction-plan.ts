import { dayMs } from '#lib/time-units.ts'
import { isCompactable, parseArtifactKind, prefixOf } from '#model/artifact.ts'
import type { CompactionPeriod } from '#model/compaction.ts'
import { newId } from '#model/id.ts'
import { compactionLimits } from '#model/limits.ts'
import type { CommitToCompact, CompactionPlace, ListedFile, NewCompaction, PlannedSource } from './compactions.ts'

export const periodMs = { hour: 3_600_000, day: dayMs } as const

/** Returns the end of the last period that is closed: most late segments have been delivered. */
export function closedUntil(period: CompactionPeriod, now: number): number {
  return startOf(period, now - compactionLimits.marginMs[period])
}

export function startOf(period: CompactionPeriod, at: number): number {
  return at - (at % periodMs[period])
}

type Bin = { readonly place: CompactionPlace; sources: PlannedSource[]; bytes: number; rows: number }

/**
 * Returns the compactions for the files of commits, which are in the order of their seals. Small files of one kind and period that are in one place become
 * one file, in this order, up to a size. What is alone, or large enough, stays as it is.
 */
export function planCompactions(
  endpoint_id: string,
  commits: readonly CommitToCompact[],
  { period, except_views = [] }: { readonly period: CompactionPeriod; readonly except_views?: readonly string[] },
  {
    bytesMax,
    sourcesMax,
    bytesEnough,
  }: { readonly bytesMax: number; readonly sourcesMax: number; readonly bytesEnough: number } = compactionLimits,
): readonly NewCompaction[] {
  const open = new Map<string, Bin>()
  const full: Bin[] = []
  for (const commit of commits) {
    for (const file of commit.files) {
      const { artifact, marker_id } = file
      const { bytes, rows, sha256 } = artifact
      if (bytes >= bytesEnough || rows === 0 || !isMergeable(file, except_views)) continue
      const place = placeOf(endpoint_id, commit, file)
      const name = JSON.stringify([place, startOf(period, commit.sealed_at)])
      let bin = open.get(name)
      if (bin !== undefined && (bin.bytes + bytes > bytesMax || bin.sources.length === sourcesMax)) {
        full.push(bin)
        bin = undefined
      }
      bin ??= { place, sources: [], bytes: 0, rows: 0 }
      open.set(name, bin)
      bin.sources.push({ commit_id: commit.id, marker_id, first_row: bin.rows, rows, bytes, sha256 })
      bin.bytes += bytes
      bin.rows += rows
    }
  }
  const bins = [...full, ...open.values()].filter(({ sources }) => sources.length > 1)
  return bins.map(({ place, sources }) => ({ ...place, id: `compact-${newId()}`, sources }))
}

function isMergeable({ kind, artifact, marker_id }: ListedFile, except_views: readonly string[]): boolean {
  const parsed = parseArtifactKind(kind)
  if (parsed === undefined || !isCompactable(parsed) || ('name' in parsed && except_views.includes(parsed.name))) return false
  // Neither a merged file nor one of an adoption, which is rare, and has a key of its own.
  return artifact.key.includes(`/${marker_id.split('.')[0]}.`)
}

function placeOf(endpoint_id: string, commit: CommitToCompact, { kind, artifact }: ListedFile): CompactionPlace {
  const { destination_id, bucket, region, sealed_at } = commit
  const { key, view_id, view_version } = artifact
  return {
    ...{ endpoint_id, kind, destination_id, bucket, region },
    view: view_id === undefined || view_version === undefined ? null : { id: view_id, version: view_version },
    date: new Date(sealed_at).toISOString().slice(0, 10),
    prefix: prefixOf(key, endpoint_id),
  }
}
