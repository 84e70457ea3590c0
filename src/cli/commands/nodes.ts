import { buildRouteMap } from '@stricli/core'
import { command } from './command.ts'
import { flag, json, oneArgument, required } from './parameters.ts'

const nodes = () => import('../operator/nodes.ts')

const node = required('id or name of the node', 'NODE')
const id = oneArgument('id or name of the node', 'NODE')

export const nodesCommands = buildRouteMap({
  routes: {
    list: command('list nodes, when they last reported, and what is on their disks', async () => (await nodes()).listAllNodes, {
      flags: { json },
    }),
    rename: command('give a node a name, for lists and reasons', async () => (await nodes()).renameOneNode, {
      flags: { json },
      positional: { kind: 'tuple', parameters: [node, required('its new name', 'NAME')] },
    }),
    remove: command(
      'remove a node that does not come back; says what is abandoned with it',
      async () => (await nodes()).removeOneNode,
      { flags: { yes: flag('remove it; without it only say what would be abandoned'), json }, positional: id },
      'Removes a node that does not come back: drains no longer wait for it, and control refuses its credential. Says what it last reported to hold, which is abandoned. A node that still has its disk and a join token joins again, and delivers what it holds.',
    ),
    release: command(
      'let another machine join under the id of a node, after its disk was lost',
      async () => (await nodes()).releaseNode,
      { flags: { json }, positional: id },
      'Lets another machine join under the id of a node whose disk, and with it the credential, was lost. The credential that control knows is refused from then on.',
    ),
  },
  docs: {
    brief: 'show, name and remove nodes',
    fullDescription: 'Shows, names and removes nodes, directly in the database: control does not have to run.',
  },
})
