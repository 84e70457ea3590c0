import { buildRouteMap } from '@stricli/core'
import { command } from './command.ts'
import { flag, json, oneArgument, optional, parseId, required } from './parameters.ts'

const losses = () => import('../operator/losses.ts')
const nodes = () => import('../operator/nodes.ts')

const node = required('id or name of the node', 'NODE')
const id = oneArgument('id or name of the node', 'NODE')

export const nodesCommands = buildRouteMap({
  routes: {
    list: command('list nodes, when they last reported, and what is on their disks', async () => (await nodes()).listAllNodes, {
      flags: { json },
    }),
    rename: command('give a node a name, for lists and reasons', async () => (await nodes()).renameOneNode, {
      flags: { none: flag('take its name away'), json },
      positional: { kind: 'tuple', parameters: [node, optional('its new name', 'NAME')] },
    }),
    remove: command(
      'remove a node that does not come back; says what is abandoned with it',
      async () => (await nodes()).removeOneNode,
      { flags: { yes: flag('remove it; without it only say what would be abandoned'), json }, positional: id },
      'Removes a node that does not come back: drains no longer wait for it, and control refuses its credential. Says what it last reported to hold, which is abandoned. A node that still has its disk and a join token joins again, and delivers what it holds.',
    ),
    losses: command(
      'list what was acknowledged and not delivered when nodes were removed, of all accounts',
      async () => (await losses()).listAllLosses,
      {
        flags: {
          account: optional('only those of this account', 'ID', parseId),
          state: optional('only open, recovered or confirmed ones', 'STATE'),
          json,
        },
      },
    ),
    'confirm-loss': command(
      'accept a loss for its account, such as a suspended one',
      async () => (await losses()).confirmAnyLoss,
      { flags: { json }, positional: oneArgument('id of the loss', 'ID', parseId) },
      'Accepts a loss for its account: it is no longer a reason in the status of the endpoint, and metrics no longer count it. The account can do so itself with inlet losses confirm, unless it is suspended. Its audit trail has it.',
    ),
    revoke: command(
      'revoke the credential of a node',
      async () => (await nodes()).revokeNode,
      { flags: { json }, positional: id },
      'Has control refuse the credential of a node at once. The node registers again by itself if it has a join token that is still active, or the join secret. For a node that was removed, or whose id was released, give its id: control no longer believes what its machine says is left on its disk.',
    ),
    release: command(
      'let another machine join under the id of a node, after its disk was lost',
      async () => (await nodes()).releaseNode,
      { flags: { yes: flag('release it also while its node runs'), json }, positional: id },
      'Lets another machine join under the id of a node whose disk, and with it the credential, was lost. The credential that control knows is refused from then on, and a machine that still has it stops. A node that runs is released only with --yes.',
    ),
  },
  docs: {
    brief: 'show, name and remove nodes',
    fullDescription: 'Shows, names and removes nodes, directly in the database: control does not have to run.',
  },
})
