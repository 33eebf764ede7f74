"""More words that callers use for each other in parameters, by field: groups are parted by `|`.

Only words of which each says the same of a parameter; where a word has other meanings too, the value's type and the other
parameters decide, and two that fit are none.
"""

from __future__ import annotations

from typing import Final

_LINES: Final = """
free available vacant unoccupied | reason motive cause grounds | connector plug socket | granularity resolution
strategy policy | publish release | notify inform tell alert notification | direct nonstop directly | extras addons add_ons
damage damages damaged | recording audio | exam test | points score | size dimensions measurements | reservation booking
activity workout exercise | separator delimiter sep | row line | licence license | plate registration
observations measurements readings | finish surface | finish coating | start begin commence depart
hotel accommodation lodging | doctor physician practitioner | patient client | tenant renter lessee | landlord lessor
property estate | apartment flat | house home | home dwelling housing residence | garden yard | garage carport
salary wage pay | job position occupation | employer company | department division | manager supervisor boss
candidate applicant | resume cv | venue location place site | region area district zone | state province | postcode zip
country nation | language tongue | translation rendering | paragraph section | chapter section | page sheet | paper sheet
cover binding | author creator writer | editor publisher | publisher label | album record
artist performer musician band singer | track song | playlist queue | volume loudness | pitch frequency | tempo bpm
movie film | cinema theater theatre | show screening performance | actor cast | season series | episode part | recipe dish
meal dish | diet nutrition | allergy allergies intolerance | ingredient component | oven stove | cuisine kitchen
calories energy kcal | drink beverage | table desk | seat chair place | guests diners covers | reservation table
flight plane | airport airfield | airline carrier | carrier shipper courier | luggage baggage bags | cabin class | train rail
platform gate track | stop station halt | route line | port harbour harbor | ship vessel boat | ferry ship | crossing passage
car vehicle auto automobile | truck lorry | fuel gas petrol | mileage odometer | driver motorist | engine motor
parking garage | toll fee | fee charge | price cost rate | discount reduction | tax vat | invoice bill | receipt slip
voucher coupon promo | currency money | deposit advance | balance saldo | loan credit | rent lease | insurance coverage
claim case | premium contribution | policy contract | accident incident | incident event occurrence | injury wound
symptom complaint | diagnosis finding | treatment therapy | medication medicine drug | dose dosage | pulse heart_rate
pressure tension | blood sanguine | weight mass | height altitude elevation | depth deepness | width breadth
length duration | length distance | distance range | radius range | speed velocity | angle bearing heading
direction heading | coordinates position location | position place spot | center centre middle | center midpoint
latitude lat | longitude lon lng | altitude elevation | brightness luminosity intensity | color colour tint hue shade
pigment colorant tint | contrast difference | sharpness focus | temperature temp | humidity moisture
rain rainfall precipitation | rain raining | wind breeze | weather climate | sensor probe | meter gauge | device appliance
device gadget | machine equipment | printer plotter | tray bin | duplex double_sided two_sided | copies prints
margin border | font typeface | layout format | format form | theme style | style look | template pattern
background backdrop | image picture photo | photo picture snapshot | video clip | subtitle caption | resolution quality
quality grade | difficulty level grade | level tier stage | stage phase | priority urgency importance | status state
mode method manner | method way means | class category | action reaction response | channel medium | message notice
letter mail | parcel package packet | crate box case | container box can tin | weight load | address location
recipient addressee receiver | sender shipper | courier messenger | delivery shipment shipping | delivery dropoff
pickup collection | return giveback | warehouse depot store | stock inventory | supplier vendor | article item product goods
goods products merchandise | brand make manufacturer | serial sn | warranty guarantee | repair fix | spare replacement
customer client buyer | member subscriber | member participant | subscription membership | contract agreement
signature sign | document paper file | file document | archive backup | archive zip | folder directory | snapshot backup
restore recover | checksum hash digest | verify check validate | threads workers | concurrency parallelism | worker thread
timeout limit | retry attempt | window slot | slot opening | schedule timetable | date day | time hour | deadline due
begin from | term semester | term period | course class lesson | lesson class | school academy | pupil student learner
teacher tutor instructor | grade mark score | exam examination | homework assignment | feedback comment remark
comment note remark annotation | parent guardian | child kid | adult grownup | senior elder | dog hound | pet animal
breed race | plant flower | seed grain | field plot | crop harvest | water irrigation | flow intensity | valve tap
pump compressor | electricity power | power wattage | consumption usage | charger station | charge charging
battery accumulator | target object | telescope scope | exposure shutter | filter band | star object | orbit path
signal alarm | alarm alert | camera cam | door gate | lock latch | room chamber space | floor storey story level
building house | elevator lift | light lamp | blind shutter | heating heater | music songs | speaker loudspeaker
headline title | headline heading | keywords tags topics | chapters marks | summary abstract synopsis | question query
answer reply | answer response | survey poll | choice option | vote ballot | participants attendees | team group crew
player athlete | match game | league division | trail path hike | summit peak | hut cabin | highlight feature | ticket pass
queue line | visitor guest | exhibition exhibit show | museum gallery | tour trip excursion | trip journey travel
guide leader | hazardous dangerous | fragile breakable | urgent rush | cheap affordable | accessible barrier_free
wheelchair accessible | silent quiet mute | public shared | visible shown displayed show display
allowed permitted allow permit friendly | included include contained | required mandatory needed | optional voluntary
anonymous unnamed | recurring repeating | automatic auto | manual hand | waive exempt | shake stir_up
sorting sort order ordering | sort sorted | page paging | per_page page_size | horizontal across | lot batch | batch group
unit measure | volume amount | volume capacity | capacity size | amount quantity | renew extend | extend prolong | until till
cancel revoke | withdrawal withdraw | relation relationship | contact person | person people | household home
nationality citizenship | birth born | gender sex | forename first_name | surname last_name | username login handle
password passphrase | nickname alias | alias name | domain host hostname | hostname host | record entry | zone area
record row | proxy proxied | endpoint url | webhook callback | repository repo | commit revision | branch ref | issue ticket
milestone target | environment stage | cluster pool | node host | namespace ns | replica copy instance | memory ram
disk storage | cpu core | token credential | scope permission | role group | metric measure | aggregation aggregate
aggregation rollup | bucket bin | threshold limit | chart graph plot diagram | axis dimension | layer overlay | map chart
scale factor | zoom magnification | seller vendor | player participant | sample specimen | ground surface | trim cut crop
building site | veggie vegetarian | veg vegetarian | route waypoints | bouquet flowers | veterinarian vet | boat vessel
employee staff worker | nurse carer | bed berth | crew staff | pilot captain | cargo freight goods load | pallet skid
shelf rack | aisle row | tank container | well borehole | soil earth | fertilizer fertiliser manure | herd flock
stable barn | hive colony | vineyard plot | bottle flask | barrel cask | brew batch | yarn thread | fabric cloth textile
garment clothing | shoe footwear | necklace chain | gem stone jewel | frame framing | canvas painting | sculpture statue
stage scene | costume outfit | choir chorus | conductor director | orchestra ensemble | rehearsal practice | tuning pitch
court pitch | referee umpire judge | coach trainer | workout training | lap round | medal award prize
tournament competition contest | ski skiing | slope piste run | avalanche slide | rope cord | tent shelter | campsite pitch
visa permit | passport id_card | embassy consulate | lawyer attorney solicitor | court tribunal | judge magistrate
statute law | fine penalty | evidence proof | witness observer | suspect accused | election vote | council board
budget funds | grant subsidy | donation gift | donor giver | charity nonprofit | volunteer helper | satellite probe
antenna aerial | frequency band | lens objective | microscope scope | slide specimen | solution solvent | reagent chemical
experiment trial test | virus pathogen | vaccine jab vaccination | vaccination immunization immunisation | tooth dental
glasses spectacles | lift elevator | crane hoist | brick block | concrete cement | roof rooftop | tile slab | pipe tube
boiler heater | fuse breaker | socket outlet | cable wire lead | bolt screw | gear cog | tyre tire wheel | brake brakes
oil lubricant | tyre_pressure tire_pressure | carwash wash | start first | end last final | message notification
exclude ignore omit | start starting from | end ending until | if when | extras add_ons addons
per_page page_size results_per_page | surname last_name family_name | forename first_name given_name
heart_rate pulse pulse_rate | date_of_birth birthday birth_date dob birthdate | zip_code postcode postal_code zip
check_in arrival_date check_in_date arrival | check_out departure_date check_out_date departure
license_plate plate_number number_plate registration_number plate | workdir working_dir working_directory cwd
thread_ts thread_id thread | assignee assigned_to assign_to |
units unit_system measurement_system measurement_units | origin start_location start_address starting_point from_location from_address
destination end_location end_address to_location to_address | per_page limit max_results page_size | freshness time_range timeframe recency time_filter
as_of balance_date reporting_date key_date | sort_by order_by sort_order sorting ordering sort order
how_many count quantity number
"""
GROUPS: Final = tuple(
    frozenset(words) for group in _LINES.replace("\n", " | ").split("|") if len(words := group.split()) > 1
)
"""The groups; words with `_` are those of names that are several words, and are compared as a whole."""
NAMES: Final = tuple(group for group in GROUPS if any("_" in word for word in group))
"""The groups with names of several words."""
