import { buildRouteMap } from '@stricli/core'
import { command } from './command.ts'
import { json, optional } from './parameters.ts'

const database = () => import('../operator/database.ts')

export const databaseCommands = buildRouteMap({
  routes: {
    show: command(
      'show which state the database has, which nodes refuse it, and whether commits may be missing',
      async () => (await database()).showDatabase,
      { flags: { json } },
    ),
    accept: command(
      'let nodes follow this database, although it is an older copy or another one',
      async () => (await database()).acceptDatabase,
      {
        flags: {
          server: optional('the server to accept, one of INLET_DATABASE_URL; needed if several take writes', 'HOST:PORT'),
          json,
        },
      },
      `Lets nodes follow this database, although it is an older copy of the one that they know, or another one.
A node keeps its configuration when the database of control went back to an older state, because it cannot know whether somebody meant it.
If several servers of Postgres take writes, name the right one: control and nodes then leave the others, with what only those have.
inlet restore does the same for the database of a backup. Without an account, the next start creates a first one.`,
    ),
  },
  docs: {
    brief: 'look at the database, and accept one that was put back',
    fullDescription: 'Works directly in the database: control does not have to run.',
  },
})
