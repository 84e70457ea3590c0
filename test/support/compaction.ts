/** Compacts what markers in a bucket list, as a node does it for control. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { ConversionPool } from '#delivery/convert/conversion-pool.ts'
import { ConversionRunner } from '#delivery/convert/conversion-runner.ts'
import { runCompaction } from '#delivery/jobs/compaction-run.ts'
import { runRemoval } from '#delivery/jobs/removal-run.ts'
import type { UnitEnd } from '#delivery/jobs/unit-scratch.ts'
import { MiB } from '#lib/bytes.ts'
import { systemClock } from '#lib/clock.ts'
import { FairSlots } from '#lib/fair-slots.ts'
import { system } from '#lib/system.ts'
import type { DestinationTarget } from '#model/destination.ts'
import { newId } from '#model/id.ts'
import type { CompactionUnit } from '#model/job-protocol.ts'
import type { ObjectStores } from '#objects/object-store.ts'
import { conversionPool } from './delivery-node.ts'
import type { Marker } from './markers.ts'

export type Compacting = { readonly endpointId: string; readonly kind: string; readonly target: DestinationTarget }

/** A unit for the files of one kind that the markers list, in this order. All must be sealed on one day. */
export function aCompactionUnit(markers: readonly Marker[], { endpointId, kind, target }: Compacting): CompactionUnit {
  let first_row = 0
  const sources = markers.flatMap(({ id, artifacts: { [kind]: file } }) => {
    if (file === undefined) return []
    const source = { id, first_row, rows: file.rows, bytes: file.bytes, sha256: file.sha256 }
    first_row += file.rows
    return [source]
  })
  const date = (markers[0]?.sealed_at ?? '').slice(0, 10)
  const compaction = { id: `compact-${newId()}`, endpoint_id: endpointId, kind, date, view: null, sources }
  return { ...{ lease_id: newId(), lease_ms: 60_000, job_id: newId(), account_id: newId() }, compaction, target }
}

/** Removes the sources of a compaction that ended. */
export async function removeSources(
  { compaction, ...unit }: CompactionUnit,
  compacted: UnitEnd,
  stores: ObjectStores,
  signal = new AbortController().signal,
): Promise<UnitEnd> {
  if (compacted.outcome !== 'compacted') throw new Error(JSON.stringify(compacted))
  const scratch = await mkdtemp(join(tmpdir(), 'inlet-removal-'))
  try {
    return await runRemoval(
      { ...unit, removal: { ...compaction, file: compacted.file } },
      { scratch, stores, files: system.files },
      signal,
    )
  } finally {
    await rm(scratch, { recursive: true, force: true })
  }
}

export async function compact(
  unit: CompactionUnit,
  stores: ObjectStores,
  signal = new AbortController().signal,
  pool: ConversionPool = conversionPool,
): Promise<UnitEnd> {
  const scratch = await mkdtemp(join(tmpdir(), 'inlet-compact-'))
  // Merges open no segment.
  const noSegments = { location: scratch, filesOf: () => [] }
  const runner = new ConversionRunner({
    ...system,
    pool,
    segments: noSegments,
    scratch,
  })
  const builds = new FairSlots({ capacity: 1, clock: systemClock })
  try {
    return await runCompaction(unit, { ...system, scratch, memoryBytes: 256 * MiB, builds, runner, stores }, signal)
  } finally {
    await rm(scratch, { recursive: true, force: true })
  }
}
