import { Autocomplete } from '@base-ui/react/autocomplete'
import { Dialog as BaseDialog } from '@base-ui/react/dialog'
import { useInfiniteQuery, useQuery } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { Radio, Table2 } from 'lucide-react'
import { endpointsQuery } from '../api/endpoints.ts'
import { useWholeList, viewsQuery } from '../api/views.ts'
import type { Place } from './navigation.ts'
import { useOpenActions, useOpenPlaces } from './open-places.ts'
import style from './palette.module.css'
import { useHere } from './session.tsx'

type Target = { readonly place: Place; readonly to: string; readonly value: string }

type PaletteProps = {
  readonly open: boolean
  /** Also what was typed while the palette was loading. */
  readonly typed: { readonly text: string; readonly isEntered: boolean }
  readonly onType: (text: string) => void
  readonly onFocus: () => void
  readonly onClose: () => void
  readonly opener: Element | null
}

/** Every place, action, endpoint and view by its name: Ctrl K. */
export function Palette({ open, typed, onType, onFocus, onClose, opener }: PaletteProps) {
  const navigate = useNavigate()
  const groups = [...useOpenPlaces(), ...useOpenActions()]
  const targets = [...groups.flatMap(({ places, base }) => places.map((place) => target(place, base))), ...useNamed(open)]
  const go = ({ to }: Target) => {
    onClose()
    void navigate({ to })
  }
  return (
    <BaseDialog.Root open={open} onOpenChange={(next) => next || onClose()}>
      <BaseDialog.Portal>
        <BaseDialog.Backdrop className={style.backdrop} />
        <BaseDialog.Popup
          className={style.popup}
          aria-label="Go to"
          finalFocus={() => (opener instanceof HTMLElement ? opener : undefined)}
        >
          <Autocomplete.Root
            open
            inline
            items={targets}
            itemToStringValue={({ value }: Target) => value}
            autoHighlight="always"
            value={typed.text}
            onValueChange={onType}
            onItemHighlighted={(each) => {
              if (typed.isEntered && each !== undefined) go(each)
            }}
          >
            <Autocomplete.Input className={style.input} placeholder="Go to…" aria-label="Go to" onFocus={onFocus} />
            <Autocomplete.List className={style.list}>
              {(each: Target) => (
                <Autocomplete.Item key={each.to} value={each} className={style.item} onClick={() => go(each)}>
                  <each.place.icon aria-hidden="true" />
                  {each.place.label}
                </Autocomplete.Item>
              )}
            </Autocomplete.List>
            <Autocomplete.Empty className={style.empty}>Nothing has this name.</Autocomplete.Empty>
          </Autocomplete.Root>
        </BaseDialog.Popup>
      </BaseDialog.Portal>
    </BaseDialog.Root>
  )
}

/** The endpoints and views of the account, once they are known. */
function useNamed(open: boolean): readonly Target[] {
  const { account } = useHere()
  const id = account?.account_id ?? ''
  const enabled = open && account !== undefined
  const endpoints = useQuery({ ...endpointsQuery(id), enabled })
  const views = useInfiniteQuery({ ...viewsQuery(id), enabled })
  useWholeList(views, enabled)
  const named = [
    ...(endpoints.data?.items ?? []).map((each) => ({ ...each, path: `endpoints/${each.id}`, icon: Radio, words: 'endpoint' })),
    ...(views.data?.pages.flatMap(({ items }) => items) ?? []).map((each) => {
      return { name: `${each.name} v${each.version}`, path: `views/${each.id}`, icon: Table2, words: 'view' }
    }),
  ]
  return named.map(({ name, path, icon, words }) => target({ label: name, path, icon, words }, `/in/${id}`))
}

function target(place: Place, base: string): Target {
  return { place, to: place.path === '' ? base : `${base}/${place.path}`, value: `${place.label} ${place.words}` }
}
