import { buildCommand } from '@stricli/core'
import type { BackupFlags } from '../backup/backup.ts'
import type { CliContext } from '../terminal/context.ts'
import type { JsonFlags } from '../terminal/print-json.ts'
import { flag, json, oneArgument } from './parameters.ts'

export const backupCommand = buildCommand<BackupFlags, [path: string], CliContext>({
  loader: async () => (await import('../backup/backup.ts')).backup,
  parameters: {
    flags: {
      withBuckets: flag('also copy buckets that are directories of this machine'),
      json,
    },
    positional: oneArgument('new directory for the backup', 'DIR'),
  },
  docs: {
    brief: 'copy the data directory of this machine, while Inlet runs or not',
    fullDescription: `Copies the log, the outbox, the identity of the node and the database of this machine to a new directory, with a checksum of each file. Inlet may run meanwhile, and nothing of it is changed.

What was acknowledged before the command began is in the backup, or delivered. Buckets are not part of it, unless they are directories here and --with-buckets is given; a database in Postgres is copied with pg_dump, afterwards.`,
  },
})

export const restoreCommand = buildCommand<JsonFlags, [path: string], CliContext>({
  loader: async () => (await import('../backup/restore.ts')).restore,
  parameters: { flags: { json }, positional: oneArgument('directory of a backup', 'DIR') },
  docs: {
    brief: 'put a backup into an empty data directory',
    fullDescription: `Puts a backup of inlet backup into the data directory (INLET_DATA_DIR), which must be empty. Checks each file. If it is interrupted, no start succeeds until it was repeated.

After the start, inlet commits rebuild records what was delivered after the backup was made.`,
  },
})
