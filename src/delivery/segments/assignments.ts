/**
 * Logs that the operator sends to a destination: `inlet segments deliver`. One file per log: `<directory>/<log>.json`.
 *
 * Owns: these files, and when one goes. Does not own: the delivery, which treats the log like that of an endpoint.
 * Law: an assignment applies only to a log whose endpoint has no destination. It stays until nothing in the log is left to deliver.
 */
import { join } from 'node:path'
import type { Clock } from '#lib/clock.ts'
import { type Files, writeDurably } from '#lib/files.ts'
import { parseJson } from '#lib/json.ts'
import { Periodic } from '#lib/periodic.ts'
import type { Service } from '#lib/service.ts'
import type { Logger } from '#lib/telemetry.ts'
import { AssignableDestination } from '#model/destination.ts'
import type { Endpoints } from './endpoints.ts'

const intervalMs = 1_000

export async function writeAssignment(
  files: Files,
  directory: string,
  log: string,
  assignment: AssignableDestination,
): Promise<void> {
  await writeDurably(files, join(directory, `${log}.json`), Buffer.from(`${JSON.stringify(assignment, null, 1)}\n`))
}

/** Returns the assignments by log. A damaged file counts as missing: the operator's next command replaces it. */
export async function readAssignments(files: Files, directory: string): Promise<ReadonlyMap<string, AssignableDestination>> {
  const found = new Map<string, AssignableDestination>()
  for (const { name } of await files.list(directory)) {
    const log = /^([\w-]+)\.json$/.exec(name)?.[1]
    if (log === undefined) continue
    const bytes = await files.read(join(directory, name)).catch(() => undefined)
    const { data } = AssignableDestination.safeParse(parseJson(Buffer.from(bytes ?? []).toString('utf8')))
    if (data !== undefined) found.set(log, data)
  }
  return found
}

export type AssignmentsOptions = {
  readonly directory: string
  readonly endpoints: Endpoints
  /** Whether the log has segments that are not delivered. */
  readonly hasSegments: (log: string) => Promise<boolean>
  readonly files: Files
  readonly clock: Clock
  readonly logger: Logger
}

/** Applies the assignments while delivery runs. */
export class Assignments implements Service {
  readonly name = 'assignments'
  readonly #options: AssignmentsOptions
  readonly #reads: Periodic

  constructor(options: AssignmentsOptions) {
    const { clock, logger } = options
    this.#options = options
    this.#reads = new Periodic({
      ...{ name: this.name, intervalMs, clock, logger },
      run: () => this.#apply(),
      runAtStart: true,
      failure: 'reading assignments failed',
      recovery: 'reading assignments restored',
    })
  }

  start(): Promise<void> {
    return this.#reads.start()
  }

  stop(): Promise<void> {
    return this.#reads.stop()
  }

  async #apply(): Promise<void> {
    const { directory, endpoints, hasSegments, files, logger } = this.#options
    const assigned = new Map(await readAssignments(files, directory))
    for (const [log, { destination }] of assigned) {
      if (await hasSegments(log)) continue
      await files.remove(join(directory, `${log}.json`))
      assigned.delete(log)
      logger.info({ log, destination: destination.id }, 'assigned log delivered')
    }
    endpoints.assign(assigned)
  }
}
