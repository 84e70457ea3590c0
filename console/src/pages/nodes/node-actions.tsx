import { useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import { ApiError } from '../../api/client.ts'
import { type Node, nodesKey, removeNode, revokeCredential } from '../../api/nodes.ts'
import { Button } from '../../design/button.tsx'
import { Confirm } from '../../design/confirm.tsx'
import { formatBytes } from '../../design/format.ts'
import { Bullets } from '../../design/layout.tsx'
import { CheckboxField } from '../../design/toggle-field.tsx'
import { AskingButton } from '../../shell/asking-button.tsx'
import { useChange } from '../../shell/use-change.ts'
import { labelOf } from './node-state.tsx'
import { RenameNode } from './rename-node.tsx'

/** Actions of an operator on a machine: mostly on one that is lost, or that somebody else has. */
export function NodeActions({ node }: { readonly node: Node }) {
  return (
    <>
      <RenameNode node={node} />
      <Revoke node={node} />
      <Remove node={node} />
    </>
  )
}

function Revoke({ node }: { readonly node: Node }) {
  const [release, setRelease] = useState(false)
  return (
    <AskingButton
      title={`Revoke the credential of node ${labelOf(node)}?`}
      action="Revoke credential"
      change={{ call: () => revokeCredential(node.id, release), changes: [nodesKey], said: 'Credential revoked' }}
    >
      <Bullets>
        <li>Control refuses the node at once, and its addresses leave DNS.</li>
        <li>
          It registers again by itself if it has a join token that is active, or the join secret: revoke the token first to keep
          it out.
        </li>
        <li>What it accepted stays on its disk.</li>
      </Bullets>
      <CheckboxField
        label="Also release its id"
        hint="For a machine whose disk was lost: a new one may join under the same id. Accounts see what was lost."
        checked={release}
        onChange={setRelease}
      />
    </AskingButton>
  )
}

function Remove({ node }: { readonly node: Node }) {
  const [asked, setAsked] = useState(false)
  const navigate = useNavigate()
  const remove = useChange({
    call: (force: boolean) => removeNode(node.id, force),
    leave: async () => {
      setAsked(false)
      await navigate({ to: '/operate/nodes' })
    },
    changes: [nodesKey],
    said: 'Node removed',
  })
  // Control refuses it first where data would be abandoned, and says what.
  const obstacle = remove.error instanceof ApiError && remove.error.status === 409
  return (
    <>
      <Button onClick={() => setAsked(true)}>Remove node</Button>
      <Confirm
        open={asked}
        onClose={() => setAsked(false)}
        title={`Remove node ${labelOf(node)}?`}
        action={obstacle ? 'Remove it anyway' : 'Remove node'}
        onConfirm={() => remove.mutate(obstacle)}
        call={remove}
        {...(obstacle ? { typed: labelOf(node) } : {})}
      >
        <Bullets>
          <li>Drains no longer wait for it, and control refuses its credential.</li>
          <li>
            Its disk is not touched. It holds {formatBytes(node.segments.bytes)} that are not in a bucket
            {node.segments.bytes > 0 && ': another machine can adopt them with inlet node --adopt'}.
          </li>
          {node.segments.bytes > 0 && (
            <li>Accounts see this as a loss of their endpoints, until it is delivered after all or they confirm it.</li>
          )}
        </Bullets>
      </Confirm>
    </>
  )
}
