import { command } from './command.ts'
import { flag, json } from './parameters.ts'

export const scrubCommand = command(
  'verify what is on this node and what was delivered, against checksums',
  async () => (await import('../scrub/command.ts')).scrub,
  {
    flags: {
      sizesOnly: flag('compare delivered files by their size; without it all are read, and compared with their SHA-256'),
      json,
    },
  },
  `Verifies what is stored, now and as fast as it can be read: the segments, reports and idempotency keys on the disk of this node, and, with the database, every file and marker of every commit in the buckets, merged files included. It looks for markers without a commit, too.

Changes and repairs nothing, and works while Inlet runs and while it is down. Each finding says what to do. Exits with 1 if something is found. Delivery does the same slowly by itself: see INLET_SCRUB_INTERVAL_HOURS.`,
)
