import { useState } from 'react'
import { changeNode, type Node, nodesKey } from '../../api/nodes.ts'
import { Button } from '../../design/button.tsx'
import { Dialog } from '../../design/dialog.tsx'
import { TextField } from '../../design/field.tsx'
import { CallForm } from '../../shell/call-form.tsx'
import { useChange } from '../../shell/use-change.ts'
import { labelOf } from './node-state.tsx'

/** Gives a node a name, or takes it away. */
export function RenameNode({ node }: { readonly node: Node }) {
  const [asked, setAsked] = useState(false)
  return (
    <>
      <Button onClick={() => setAsked(true)}>{node.name === null ? 'Name node' : 'Rename node'}</Button>
      {asked && <NameDialog node={node} onClose={() => setAsked(false)} />}
    </>
  )
}

function NameDialog({ node, onClose }: { readonly node: Node; readonly onClose: () => void }) {
  const [name, setName] = useState(node.name ?? '')
  const save = useChange({
    call: () => changeNode(node.id, { name: name.trim() === '' ? null : name }),
    leave: onClose,
    changes: [nodesKey],
    said: 'Name saved',
  })
  return (
    <Dialog open onClose={onClose} title={`Name of node ${labelOf(node)}`}>
      <CallForm call={save} action="Save name">
        {(errorOf) => (
          <TextField
            label="Name"
            value={name}
            onChange={setName}
            autoComplete="off"
            error={errorOf('name')}
            hint="Accounts read it in the status of their endpoints. Empty for none."
          />
        )}
      </CallForm>
    </Dialog>
  )
}
