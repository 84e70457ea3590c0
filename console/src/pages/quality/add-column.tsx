import { useMutation, useQueryClient } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import { addColumnToDraft } from '../../api/drafts.ts'
import type { UnmappedPath } from '../../api/view-metrics.ts'
import { type ViewDetail, viewsKey } from '../../api/views.ts'
import { Dialog } from '../../design/dialog.tsx'
import { TextField } from '../../design/field.tsx'
import { say } from '../../design/toast.tsx'
import { CallForm } from '../../shell/call-form.tsx'
import { useAccount } from '../../shell/session.tsx'
import { proposeColumn } from './proposed-column.ts'

type AddColumnProps = { readonly view: ViewDetail; readonly path: UnmappedPath; readonly onClose: () => void }

/** Adds a column that reads the path to a draft, and opens the draft in the editor. */
export function AddColumn({ view, path, onClose }: AddColumnProps) {
  const account = useAccount()
  const queries = useQueryClient()
  const navigate = useNavigate()
  const proposed = proposeColumn(
    path,
    view.definition.columns.map(({ name }) => name),
  )
  const [name, setName] = useState(proposed.name)
  const [type, setType] = useState(proposed.type)
  const draft = view.versions.find(({ status }) => status === 'draft')
  const add = useMutation({
    mutationFn: () => addColumnToDraft(view.id, { name, type, path: path.path }),
    onSuccess: async (changed) => {
      await queries.invalidateQueries({ queryKey: viewsKey(account) })
      say(`Column ${name} added to version ${changed.version}`)
      await navigate({ to: '/in/$account/views/$view/edit', params: { account, view: changed.id } })
    },
  })
  const about =
    draft === undefined
      ? 'Published versions never change: the column goes into a draft of the next version, which opens in the editor.'
      : `The column goes into version ${draft.version}, which is a draft, and opens in the editor.`
  return (
    <Dialog open onClose={onClose} title={`Add a column for ${path.path}`} about={about}>
      <CallForm call={add} action="Add column">
        {(_errorOf) => (
          <>
            <TextField label="Name" value={name} onChange={setName} required />
            <TextField
              label="Type"
              value={type}
              onChange={setType}
              required
              hint={`The samples have values of the ${path.types.length === 1 ? 'kind' : 'kinds'} ${path.types.join(', ')}.`}
            />
          </>
        )}
      </CallForm>
    </Dialog>
  )
}
