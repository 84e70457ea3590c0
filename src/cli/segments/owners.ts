import type { Config } from '#config/config.ts'
import { readAssignments } from '#delivery/segments/assignments.ts'
import type { Files } from '#lib/files.ts'
import type { Logger } from '#lib/telemetry.ts'
import type { Snapshot, SnapshotEndpoint } from '#model/snapshot.ts'
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

/** Returns a function that finds the owner of a log, according to the newest configuration that a process stored on this disk. */
export async function readOwners({ paths }: Config, files: Files, logger: Logger): Promise<(log: string) => Owner> {
  // An endpoint may be deleted while one of the two processes is down: that one's file still has it.
  const stored = [await readStored(paths.deliverySnapshot, files, logger), await readStored(paths.ingestSnapshot, files, logger)]
  const [newest] = stored.filter((snapshot) => snapshot !== undefined).sort((a, b) => b.epoch - a.epoch)
  const endpoints = newest?.endpoints
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

async function readStored(path: string, files: Files, logger: Logger): Promise<Snapshot | undefined> {
  const sections = new SnapshotSections(['endpoints'])
  for (const update of await new SnapshotFile({ path, files, logger }).load()) sections.apply(update)
  return sections.current
}
