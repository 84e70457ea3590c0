import type { Config } from '#config.ts'
import { readAssignments } from '#delivery/assignments.ts'
import type { Files } from '#lib/files.ts'
import type { Logger } from '#lib/telemetry.ts'
import type { SnapshotEndpoint } from '#model/snapshot.ts'
import { SnapshotFile } from '#node/snapshot-file.ts'
import { SnapshotSections } from '#node/snapshot-sections.ts'

/** The owner of a log that only the operator can get rid of. */
export const unowned = 'none: the endpoint is not in the configuration of this node'

export type Owner = {
  /** The id of the endpoint, or `none: ` and why. */
  readonly text: string
  readonly endpoint: SnapshotEndpoint | undefined
  /** Whether the operator has the log delivered to a destination. */
  readonly isAssigned: boolean
}

/** Returns a function that finds the owner of a log, according to the last configuration that delivery stored on this disk. */
export async function readOwners({ paths }: Config, files: Files, logger: Logger): Promise<(log: string) => Owner> {
  const sections = new SnapshotSections(['endpoints'])
  const updates = await new SnapshotFile({ path: paths.deliverySnapshot, files, logger }).load()
  for (const update of updates) sections.apply(update)
  const endpoints = sections.current?.endpoints
  const byId = new Map(endpoints?.map((endpoint) => [endpoint.id, endpoint]))
  const assignments = await readAssignments(files, paths.assignments)
  return (log) => {
    const endpoint = byId.get(log)
    const assigned = endpoint?.destination == null ? assignments.get(log) : undefined
    const rest = { endpoint, isAssigned: assigned !== undefined }
    if (endpoint !== undefined) return { text: log, ...rest }
    if (assigned !== undefined) return { text: `none: to be delivered to destination ${assigned.destination.id}`, ...rest }
    return { text: endpoints === undefined ? 'none: this node has no configuration yet' : unowned, ...rest }
  }
}
