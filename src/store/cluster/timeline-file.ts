/**
 * The newest timeline of each Postgres that this installation has used, in a file of control's data directory.
 *
 * Law: it is on disk before the server is used. A damaged file is an empty one: the servers that can be reached tell the newest timeline again.
 */
import { crc32 } from 'node:zlib'
import { z } from 'zod'
import { errorMessage } from '#lib/error-message.ts'
import { type Files, writeDurably } from '#lib/files.ts'
import { parseJson } from '#lib/json.ts'
import type { Logger } from '#lib/telemetry.ts'
import type { Standing, TimelineMemory } from '../engines/timelines.ts'

const Standings = z.array(z.strictObject({ system: z.string(), timeline: z.int().min(1), generation: z.int().min(0) }))

/** With a checksum: a flipped bit in a timeline would refuse the right server, or use an older one. */
const Content = z
  .strictObject({ newest: Standings, crc32: z.int() })
  .refine(({ newest, crc32: sum }) => crc32(JSON.stringify(newest)) === sum)

export function timelineFile(files: Files, path: string, logger: Pick<Logger, 'error' | 'warn'>): TimelineMemory {
  return {
    async read() {
      try {
        const bytes = await files.read(path)
        return bytes === undefined ? [] : Content.parse(parseJson(Buffer.from(bytes).toString('utf8'))).newest
      } catch (error) {
        logger.error({ path, reason: errorMessage(error) }, 'known timelines of the database unreadable; asking the servers')
        return []
      }
    },
    async write(standings) {
      const newest = standings.map(({ system, timeline, generation }): Standing => ({ system, timeline, generation }))
      const text = JSON.stringify({ newest, crc32: crc32(JSON.stringify(newest)) })
      try {
        await writeDurably(files, path, Buffer.from(`${text}\n`))
      } catch (error) {
        logger.warn({ path, err: error }, 'timeline of the database not remembered: a restart may use an older server')
      }
    },
  }
}

/** For commands, which may run as another user: what control remembers, and nothing more. */
export function readOnly({ read }: TimelineMemory): TimelineMemory {
  return { read, write: async () => undefined }
}
