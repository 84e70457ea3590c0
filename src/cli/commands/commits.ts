import { buildRouteMap } from '@stricli/core'
import { commitsFilesCommand, commitsListCommand } from './account-resources.ts'
import { command } from './command.ts'
import { flag, json, optional } from './parameters.ts'

export const commitsCommands = buildRouteMap({
  routes: {
    list: commitsListCommand,
    files: commitsFilesCommand,
    rebuild: command(
      'record commits that the database lost, from the markers in the buckets',
      async () => (await import('../commits/rebuild-command.ts')).rebuildCommits,
      {
        flags: {
          endpoint: optional('only this endpoint', 'ID'),
          destination: optional('only this destination', 'ID'),
          dryRun: flag('report what would be recorded, but record nothing'),
          skipUnreadable: flag('let jobs begin again although a bucket is unreadable or empty: what only it knew stays missing'),
          json,
        },
      },
      `Records commits that the database lost, from the markers in the buckets: for example after a database was restored from an older copy.
Known commits are left unchanged, so it may run again at any time, also while the service runs.
Exits with 1 if something could not be read or was rejected.`,
    ),
  },
  docs: { brief: 'look at commits, and record those that the database lost' },
})
