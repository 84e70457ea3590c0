import { command } from './command.ts'
import { flag, json, oneArgument } from './parameters.ts'

export const backupCommand = command(
  'copy the data directory of this machine, while Inlet runs or not',
  async () => (await import('../backup/backup.ts')).backup,
  {
    flags: { withBuckets: flag('also copy buckets that are directories of this machine'), json },
    positional: oneArgument('new directory for the backup', 'DIR'),
  },
  `Copies the log, the outbox, the identity of the node and the database of this machine to a new directory, with a checksum of each file. Inlet may run meanwhile, and nothing of it is changed.

What was acknowledged before the command began is in the backup, or delivered. Buckets are not part of it, unless they are directories here and --with-buckets is given; a database in Postgres is copied with pg_dump, afterwards.`,
)

export const restoreCommand = command(
  'put a backup into an empty data directory',
  async () => (await import('../backup/restore.ts')).restore,
  { flags: { json }, positional: oneArgument('directory of a backup', 'DIR') },
  `Puts a backup of inlet backup into the data directory (INLET_DATA_DIR), which must be empty. Checks each file. If it is interrupted, no start succeeds until it was repeated.

After the start, inlet commits rebuild records what was delivered after the backup was made.`,
)
