import type { Config } from '#config.ts'
import { readAssignments } from '#delivery/assignments.ts'
import type { Files } from '#lib/files.ts'
import type { Logger } from '#lib/telemetry.ts'
import type { SnapshotEndpoint } from '#model/snapshot.ts'
import { SnapshotFile } from '#node/snapshot-file.ts'
import { SnapshotSections } from '#node/snapshot-sections.ts'

export type Owner = {
  /** The id of the endpoint, or `none: ` and why. */
  readonly text: string
  readonly endpoint: SnapshotEndpoint | undefined
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
    if (endpoint !== undefined) return { text: log, endpoint }
    const assigned = assignments.get(log)
    if (assigned !== undefined) return { text: `none: to be delivered to destination ${assigned.destination.id}`, endpoint }
    if (endpoints === undefined) return { text: 'none: this node has no configuration yet', endpoint }
    return { text: 'none: the endpoint is not in the configuration of this node', endpoint }
  }
}
