import { Ellipsis } from 'lucide-react'
import { useState } from 'react'
import { changeRole, type Person, peopleQuery, removePerson } from '../../api/people.ts'
import { type Role, sessionQuery } from '../../api/session.ts'
import { Badge } from '../../design/badge.tsx'
import { IconButton } from '../../design/button.tsx'
import { Confirm } from '../../design/confirm.tsx'
import { Menu, MenuItem, MenuLabel, MenuSeparator } from '../../design/menu.tsx'
import { Table, type TableColumn } from '../../design/table.tsx'
import { Time } from '../../design/time.tsx'
import { Failure } from '../../shell/failure.tsx'
import { roleChoices } from '../../shell/roles.ts'
import { useAccount, useHere, useMay } from '../../shell/session.tsx'
import { useChange } from '../../shell/use-change.ts'
import style from './people-page.module.css'

export function Members({ people }: { readonly people: readonly Person[] }) {
  const account = useAccount()
  const { person: me } = useHere().session
  const isOwner = useMay('owner')
  const [leaving, setLeaving] = useState<Person | undefined>()
  const changes = [peopleQuery(account).queryKey, sessionQuery.queryKey]
  const change = useChange({
    call: ({ id, role }: { readonly id: string; readonly role: Role }) => changeRole(id, role),
    changes,
    said: 'Role changed',
  })
  const remove = useChange({
    call: ({ id }: Person) => removePerson(id),
    leave: () => setLeaving(undefined),
    changes,
    said: 'Person removed',
  })
  const columns: readonly TableColumn<Person>[] = [
    {
      title: 'Person',
      cell: ({ id, name, email }) => (
        <div>
          <strong>{name}</strong> {id === me.id && <Badge>you</Badge>}
          <div className={style.email}>{email ?? 'no e-mail address yet'}</div>
        </div>
      ),
    },
    { title: 'Role', cell: ({ role }) => <Badge tone={role === 'owner' ? 'good' : 'none'}>{role}</Badge> },
    { title: 'Joined', cell: ({ joined_at }) => <Time at={joined_at} />, minor: true },
    {
      title: 'Last seen',
      cell: ({ last_seen_at }) => (last_seen_at === null ? 'not signed in' : <Time at={last_seen_at} />),
      minor: true,
    },
    ...(isOwner
      ? [
          {
            title: <span className={style.hidden}>Actions</span>,
            figure: true,
            cell: (each: Person) => (
              <Menu
                trigger={
                  <IconButton
                    label={`Change ${each.name}`}
                    look="quiet"
                    size="small"
                    busy={change.isPending && change.variables.id === each.id}
                  >
                    <Ellipsis aria-hidden="true" />
                  </IconButton>
                }
              >
                <MenuLabel>Role</MenuLabel>
                {roleChoices.map(({ value, label }) => (
                  <MenuItem key={value} onSelect={() => value !== each.role && change.mutate({ id: each.id, role: value })}>
                    {label}
                    {value === each.role && ' ✓'}
                  </MenuItem>
                ))}
                <MenuSeparator />
                <MenuItem danger onSelect={() => setLeaving(each)}>
                  Remove from the account
                </MenuItem>
              </Menu>
            ),
          },
        ]
      : []),
  ]
  return (
    <>
      {change.isError && <Failure error={change.error} />}
      <Table label="Members" columns={columns} rows={people} keyOf={({ id }) => id} />
      <Confirm
        open={leaving !== undefined}
        onClose={() => setLeaving(undefined)}
        title={`Remove ${leaving?.name ?? ''} from the account?`}
        action="Remove person"
        onConfirm={() => leaving && remove.mutate(leaving)}
        call={remove}
      >
        <p>
          They lose access at once, and invitations that they made stop working. API keys that they created keep working: revoke
          those apart. Their entries in the audit trail stay.
        </p>
      </Confirm>
    </>
  )
}
