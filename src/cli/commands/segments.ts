import { buildRouteMap } from '@stricli/core'
import { command } from './command.ts'
import { flag, json, oneArgument, required, withDefault } from './parameters.ts'

const list = () => import('../segments/list.ts')
const exportCommand = () => import('../segments/export.ts')
const parked = () => import('../segments/parked.ts')
const deliver = () => import('../segments/deliver.ts')
const discard = () => import('../segments/discard.ts')
const file = () => import('../segments/file.ts')
const path = oneArgument('path of a segment', 'FILE')
const names = {
  kind: 'array',
  parameter: { parse: String, brief: 'names of segments or logs', placeholder: 'NAME' },
  minimum: 1,
} as const

/** Help of the commands that take a path. */
const readsFiles =
  'The file is a segment of the write-ahead log (.wal, .open, .quarantine) or of a bucket (.wal.zst). Continues behind damage, says where it is, and exits with 1.'

export const segmentsCommands = buildRouteMap({
  routes: {
    list: command(
      'list every segment on this node, with its owner and why it is still here',
      async () => (await list()).listNodeSegments,
      { flags: { json } },
      'Lists every segment on this node: open, sealed, parked and quarantined, with owner, records, size, age and why it is still here. Works while the processes run and while they are down.',
    ),
    export: command(
      'print the records of segments or whole logs as lines of JSON',
      async () => (await exportCommand()).exportSegments,
      {
        flags: { output: withDefault('-', 'new file to write to, - for standard output', 'FILE') },
        positional: names,
      },
      'Prints one line of JSON per record: segment, seq, record_index, received_at, envelope and payload, as `inlet segments cat` does. Of a damaged file it prints what is intact; the exit code is 1 if anything is missing.',
    ),
    retry: command(
      'convert parked segments again; every start does so as well',
      async () => (await parked()).retryParkedSegments,
      { flags: { all: flag('every parked segment of this node'), json }, positional: { ...names, minimum: 0 } },
      'Converts parked segments again, for example after an upgrade. A segment is parked if its content cannot be converted. Later segments are delivered meanwhile.',
    ),
    quarantine: command(
      'give up on parked segments; their files are kept',
      async () => (await parked()).quarantineParkedSegments,
      { flags: { json }, positional: names },
      'Gives up on parked segments: they are not converted again. Their files are kept as .quarantine until you discard them.',
    ),
    deliver: command(
      'deliver the segments of a log that has no destination',
      async () => (await deliver()).deliverLog,
      {
        flags: { destination: required('id of the destination to deliver to', 'ID') },
        positional: oneArgument('name of a log', 'LOG'),
      },
      'Delivers the segments of a log whose endpoint is gone or has no destination: through the running delivery process, in order and exactly once, as segments and raw Parquet. Shows progress until nothing is left; stopping the command does not stop the delivery.',
    ),
    discard: command(
      'remove segments for good that are parked, quarantined or without an owner',
      async () => (await discard()).discardSegments,
      { flags: { yes: flag('remove them; without it only say what would be removed'), json }, positional: names },
      'Removes segments for good that are parked, quarantined or without an owner, and says how many records that are. Export them first if in doubt.',
    ),
    cat: command(
      'print every record of a file as one line of JSON',
      async () => (await file()).catSegment,
      { positional: path },
      `Prints every record of a file as one line of JSON. ${readsFiles}`,
    ),
    check: command(
      'verify every checksum of a file and print a summary',
      async () => (await file()).checkSegment,
      { flags: { json }, positional: path },
      `Verifies every checksum of a file and prints a summary. ${readsFiles}`,
    ),
  },
  defaultCommand: 'list',
  docs: {
    brief: 'find and handle the segments on the disk of this node, and read segment files',
    fullDescription:
      'Finds and handles the segments on the disk of this node. A segment is named LOG/SEQ-INCARNATION; LOG is the id of its endpoint. `cat` and `check` read a single file by its path, wherever it is.',
  },
})
